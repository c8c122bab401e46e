package install

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/registry"
)

// python finds an interpreter that the lock is for: the one that was named, or else the
// first of those that are usual.
func (i *Installer) python(ctx context.Context, source drivers.Source) (interpreter, error) {
	names := usual()
	if i.Python != "" {
		names = []string{i.Python}
	}
	var found []string
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := command(ctx, path, "-I", "-c", "import platform; print(platform.python_version())")
		if ctx.Err() != nil {
			return interpreter{}, err
		}
		version := strings.TrimSpace(out)
		if err == nil && atLeast(version, source.Oldest) {
			return interpreter{path, version}, nil
		}
		if err == nil {
			found = append(found, path+" is "+version)
		}
	}
	if len(found) == 0 {
		found = []string{"found none of " + strings.Join(names, ", ")}
	}
	return interpreter{}, registry.WithHint(
		registry.Errorf(registry.CodeUnavailable, "%s needs Python %s or later: %s", source.Name, source.Oldest, strings.Join(found, ", ")),
		"install it (on Debian: apt-get install python3 python3-venv), or name one in MLPROMOTE_PYTHON")
}

// usual are the interpreters to try: that of the path first, then versions by name, then
// those that pyenv keeps.
func usual() []string {
	names := []string{"python3", "python3.13", "python3.12", "python3.11"}
	root := os.Getenv("PYENV_ROOT")
	if home, err := os.UserHomeDir(); err == nil && root == "" {
		root = filepath.Join(home, ".pyenv")
	}
	kept, err := filepath.Glob(filepath.Join(root, "versions", "3.1[1-3].*", "bin", "python3"))
	if err == nil { // the pattern is our own
		names = append(names, kept...)
	}
	return names
}

// atLeast compares the first two numbers of Python versions: 3.12 is not before 3.9.
func atLeast(version, oldest string) bool {
	v, o := strings.Split(version, "."), strings.Split(oldest, ".")
	if len(v) < 2 || v[0] != o[0] {
		return false
	}
	minor, err := strconv.Atoi(v[1])
	want, errWant := strconv.Atoi(o[1])
	return err == nil && errWant == nil && minor >= want
}

// venv makes a virtual environment with pip in it.
func (p interpreter) venv(ctx context.Context, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return err
	}
	out, err := command(ctx, p.path, "-I", "-m", "venv", dir)
	if err != nil && (strings.Contains(out, "ensurepip") || strings.Contains(out, "No module named venv")) {
		return registry.WithHint(registry.Errorf(registry.CodeUnavailable, "%s has no venv module: run `apt-get install python3-venv`", p.path),
			"or name another Python in MLPROMOTE_PYTHON")
	}
	return err
}

// pipInstall installs exactly what the lock lists, and no file whose hash it does
// not name.
func pipInstall(ctx context.Context, name, interpreter, lock string) error {
	_, err := command(ctx, interpreter, "-I", "-m", "pip", "install", "--require-hashes", "--only-binary=:all:", "--no-deps",
		"--no-input", "--disable-pip-version-check", "--quiet", "--requirement", lock)
	if err != nil {
		return registry.WithHint(registry.Errorf(registry.CodeUnavailable, "install %s: %w", name, err),
			"it needs a Python package index: pip's own settings (PIP_INDEX_URL, proxies) are honoured")
	}
	return nil
}

// command runs a program with the settings of pip and proxies, and no others of
// ours, and gives what it printed.
func command(ctx context.Context, path string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = settings(os.Environ())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		return out.String(), context.Cause(ctx)
	}
	var missing *exec.Error
	if errors.As(err, &missing) {
		return "", registry.Errorf(registry.CodeUnavailable, "%w", err)
	}
	if err != nil {
		text := strings.TrimSpace(out.String())
		return out.String(), registry.Errorf(registry.CodeUnavailable, "%s %s: %w: %s", filepath.Base(path), args[min(2, len(args)-1)], err, text[max(0, len(text)-1000):])
	}
	return out.String(), nil
}

// settings filters an environment down to what finding and fetching packages needs.
func settings(environ []string) []string {
	kept := []string{"LC_ALL=C.UTF-8"}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		switch upper := strings.ToUpper(name); {
		case strings.HasPrefix(upper, "PIP_"), strings.HasPrefix(upper, "NPM_CONFIG_"), strings.HasSuffix(upper, "_PROXY"),
			upper == "PATH", upper == "HOME", upper == "TMPDIR", upper == "XDG_CACHE_HOME", upper == "XDG_CONFIG_HOME",
			upper == "SSL_CERT_FILE", upper == "SSL_CERT_DIR", upper == "REQUESTS_CA_BUNDLE", upper == "NETRC":
			kept = append(kept, entry)
		}
	}
	return kept
}
