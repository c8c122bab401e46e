package connect

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// userFile is a person's own configuration: the registry that all folders use. Each key stands for a variable.
type userFile struct {
	Data       string `yaml:"data"`
	Registry   string `yaml:"registry"`
	Keys       string `yaml:"keys"`
	PolicyDir  string `yaml:"policy_dir"`
	Toolchains string `yaml:"toolchains"`
	TLSCA      string `yaml:"tls_ca"`
}

// variables returns the values by the name of the variable that each stands for.
func (f userFile) variables() map[string]string {
	return map[string]string{
		"MLPROMOTE_DATA": f.Data, "MLPROMOTE_REGISTRY": f.Registry, "MLPROMOTE_KEYS": f.Keys,
		"MLPROMOTE_POLICY_DIR": f.PolicyDir, "MLPROMOTE_TOOLCHAINS": f.Toolchains, "MLPROMOTE_CA": f.TLSCA,
	}
}

// UserFile adds a person's configuration to the environment: mlpromote/config.yaml in XDG_CONFIG_HOME, or in ~/.config. The
// file counts as a whole or not at all: it is not read if a flag or a variable names a data directory or a service, so that
// keys and policy of one registry never apply to another. A missing file changes nothing. Errors: CodeInvalid for a file
// that others may write or replace, since it decides whom this machine trusts, and for one that is not understood.
func (f *Flags) UserFile(getenv func(string) string) (func(string) string, error) {
	if f.Data != "" || f.Registry != "" || getenv("MLPROMOTE_DATA") != "" || getenv("MLPROMOTE_REGISTRY") != "" {
		return getenv, nil
	}
	home := getenv("HOME")
	folder := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(folder) { // as the XDG specification asks
		folder = filepath.Join(home, ".config")
	}
	path := filepath.Join(folder, "mlpromote", "config.yaml")
	if !filepath.IsAbs(path) {
		return getenv, nil
	}
	data, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return getenv, nil
	}
	if err != nil {
		return nil, err
	}
	values, err := parseUserFile(path, home, data)
	if err != nil {
		return nil, err
	}
	return func(name string) string {
		if set := getenv(name); set != "" {
			return set
		}
		return values[name]
	}, nil
}

// readPrivate reads a file that only this user and root can write or replace. A link is followed, and both folders count.
func readPrivate(path string) ([]byte, error) {
	file, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		return nil, registry.Errorf(registry.CodeInvalid, "%w", err)
	}
	defer file.Close() // only read from
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, registry.Errorf(registry.CodeInvalid, "%w", err)
	case !info.Mode().IsRegular() || info.Size() > strictyaml.MaxBytes:
		return nil, registry.Errorf(registry.CodeInvalid, "%s: want a file of at most %d bytes", path, strictyaml.MaxBytes)
	}
	if err := checkPrivate(path, info); err != nil {
		return nil, err
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%w", err)
	}
	for _, folder := range []string{filepath.Dir(path), filepath.Dir(target)} {
		info, err := os.Stat(folder)
		if err != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "%w", err)
		}
		if err := checkPrivate(folder, info); err != nil {
			return nil, err
		}
	}
	data, err := io.ReadAll(io.LimitReader(file, strictyaml.MaxBytes))
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%w", err)
	}
	return data, nil
}

// checkPrivate refuses a file or folder that others may write, or that belongs to another user, who may change it at any time.
func checkPrivate(path string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o022 != 0 {
		return registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "%s has the mode %#o: others may change which registry you use", path, info.Mode().Perm()),
			"chmod go-w %s removes that right", path)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
		return registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "%s belongs to another user, who may change which registry you use", path),
			"want one that belongs to you or to root")
	}
	return nil
}

func parseUserFile(path, home string, data []byte) (map[string]string, error) {
	var f userFile
	if _, err := strictyaml.Decode(path, data, &f); err != nil {
		return nil, err
	}
	if f.Data != "" && f.Registry != "" {
		return nil, registry.Errorf(registry.CodeInvalid, "%s has both data and registry: want one of the two", path)
	}
	if err := checkURL(path+": registry", f.Registry); err != nil {
		return nil, err
	}
	for key, folder := range map[string]*string{
		"data": &f.Data, "keys": &f.Keys, "policy_dir": &f.PolicyDir, "toolchains": &f.Toolchains, "tls_ca": &f.TLSCA,
	} {
		if rest, ok := strings.CutPrefix(*folder, "~/"); ok {
			*folder = filepath.Join(home, rest)
		}
		if *folder != "" && !filepath.IsAbs(*folder) {
			return nil, registry.Errorf(registry.CodeInvalid, "%s: %s is %q: want a path that begins with / or ~/, the same from every folder", path, key, *folder)
		}
	}
	return f.variables(), nil
}
