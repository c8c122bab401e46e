package install

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
	"mlpromote.dev/mlpromote/registry"
)

// python finds an interpreter that the lock file supports: the one that the user named, or the
// first of the usual ones.
func (i *Installer) python(ctx context.Context, source drivers.Source, run runner) (interpreter, error) {
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
		out, err := run(ctx, path, "-I", "-c", "import platform; print(platform.python_version())")
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
		registry.Lastingf(registry.CodeUnavailable,
			"%s needs Python %s or later: %s", source.Name, source.Oldest, strings.Join(found, ", ")),
		"install it (on Debian: apt-get install python3 python3-venv), or name one in MLPROMOTE_PYTHON")
}

// usual returns the interpreters to try: those of PATH, by name and by version, then those of
// pyenv.
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

// atLeast compares the first two numbers of Python versions, as numbers: 3.12 is later than
// 3.9.
func atLeast(version, oldest string) bool {
	v, o := strings.Split(version, "."), strings.Split(oldest, ".")
	if len(v) < 2 || v[0] != o[0] {
		return false
	}
	minor, err := strconv.Atoi(v[1])
	want, errWant := strconv.Atoi(o[1])
	return err == nil && errWant == nil && minor >= want
}

// venv creates a virtual environment with pip in it.
func (p interpreter) venv(ctx context.Context, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return err
	}
	out, err := command(ctx, p.path, "-I", "-m", "venv", dir)
	if err != nil && (strings.Contains(out, "ensurepip") || strings.Contains(out, "No module named venv")) {
		return registry.WithHint(registry.Lastingf(registry.CodeUnavailable,
			"%s has no venv module: run `apt-get install python3-venv`", p.path),
			"or name another Python in MLPROMOTE_PYTHON")
	}
	return err
}

// pipInstall installs exactly the packages in the lock file, and only files with the listed
// hashes. temp is an empty folder for pip's downloads.
func pipInstall(ctx context.Context, name, interpreter, lock, temp string, tell func(Progress)) error {
	f := &fetching{folder: temp, tell: tell}
	done := make(chan struct{})
	var polling sync.WaitGroup
	polling.Go(func() { f.poll(done) })
	defer polling.Wait()
	defer close(done)
	out, err := follow(ctx, append(settings(os.Environ()), "TMPDIR="+temp), f.line, interpreter,
		"-I", "-m", "pip", "install", "--require-hashes", "--only-binary=:all:", "--no-deps",
		"--no-input", "--disable-pip-version-check", "--progress-bar=off", "--no-color", "--requirement", lock)
	return installFailed(ctx, name, "pip", pipReason(out), temp, err,
		"it needs a Python package index: pip's own settings (PIP_INDEX_URL, proxies) are honoured")
}

// installFailed is the error of an installer that failed, if err says that it did, with the reason
// that its output has.
func installFailed(ctx context.Context, name, installer, reason, folder string, err error, hint string) error {
	var ended *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return err
	case errors.As(err, &ended):
		err = registry.Errorf(registry.CodeOf(err), "install %s: %s: %s", name, installer, reason)
	default:
		err = registry.Errorf(registry.CodeUnavailable, "install %s: %w", name, err)
	}
	return registry.WithHint(err, "%s", whatToDo(reason, folder, hint))
}

// runner runs a program and returns its output: [command], or one that remembers.
type runner func(ctx context.Context, path string, args ...string) (string, error)

// remembering returns a runner that starts each command line once. It is for one survey: the answers of a program change.
func remembering(run runner) runner {
	type answer struct {
		out string
		err error
	}
	answers := make(map[string]answer)
	return func(ctx context.Context, path string, args ...string) (string, error) {
		key := strings.Join(append([]string{path}, args...), "\x00")
		if _, known := answers[key]; !known {
			out, err := run(ctx, path, args...)
			answers[key] = answer{out, err}
		}
		return answers[key].out, answers[key].err
	}
}

// command runs a program without network access, and returns its output. The program gets only
// PATH and HOME of our environment.
func command(ctx context.Context, path string, args ...string) (string, error) {
	return follow(ctx, plain(os.Environ()), func(string) {}, path, args...)
}

// follow runs a program with that environment, and returns its output. It processes each line
// as soon as it is printed.
func follow(ctx context.Context, env []string, line func(string), path string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = env
	out := &lines{each: line}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	if ctx.Err() != nil {
		return out.text.String(), context.Cause(ctx)
	}
	var missing *exec.Error
	if errors.As(err, &missing) {
		return "", registry.Errorf(registry.CodeUnavailable, "%w", err)
	}
	if err != nil {
		text, code := strings.TrimSpace(out.text.String()), registry.CodeUnavailable
		if diskFull(text) {
			code = registry.CodeFull
		}
		return out.text.String(), registry.Errorf(code,
			"%s %s: %w: %s", filepath.Base(path), args[min(2, len(args)-1)], err, text[max(0, len(text)-1000):])
	}
	return out.text.String(), nil
}

// lines stores the output, and passes each complete line on.
type lines struct {
	text strings.Builder
	from int // of the incomplete line
	each func(string)
}

func (l *lines) Write(p []byte) (int, error) {
	l.text.Write(p)
	for {
		rest := l.text.String()[l.from:]
		end := strings.IndexByte(rest, '\n')
		if end < 0 {
			return len(p), nil
		}
		l.from += end + 1
		l.each(rest[:end])
	}
}

// plain returns the environment variables that every program needs.
func plain(environ []string) []string {
	return append(slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.Contains([]string{"PATH", "HOME", "TMPDIR", "SYSTEMROOT"}, strings.ToUpper(name))
	}), "LC_ALL=C.UTF-8")
}

// settings returns the environment variables that finding and fetching packages needs.
func settings(environ []string) []string {
	kept := []string{"LC_ALL=C.UTF-8"}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		switch upper := strings.ToUpper(name); {
		case strings.HasPrefix(upper, "PIP_"), strings.HasPrefix(upper, "NPM_CONFIG_"), strings.HasSuffix(upper, "_PROXY"),
			upper == "PATH", upper == "HOME", upper == "TMPDIR", upper == "XDG_CACHE_HOME", upper == "XDG_CONFIG_HOME",
			upper == "SSL_CERT_FILE", upper == "SSL_CERT_DIR", upper == "REQUESTS_CA_BUNDLE", upper == "NODE_EXTRA_CA_CERTS", upper == "NETRC":
			kept = append(kept, entry)
		}
	}
	return kept
}

// fillPython creates the environment and writes the record.
func fillPython(ctx context.Context, source drivers.Source,
	python interpreter, r Record, progress func(Progress)) (Record, error) {
	r.Python = python.version
	progress(Progress{Stage: "making an environment with Python " + python.version})
	if err := python.venv(ctx, filepath.Join(r.Dir, installed.VenvDir)); err != nil {
		return Record{}, err
	}
	lockPath := filepath.Join(r.Dir, "requirements.lock")
	if err := os.WriteFile(lockPath, source.Lock, 0o666); err != nil {
		return Record{}, err
	}
	progress(Progress{Stage: "installing the packages of " + source.Name})
	temp := filepath.Join(r.Dir, "tmp")
	if err := os.Mkdir(temp, 0o777); err != nil {
		return Record{}, err
	}
	if err := pipInstall(ctx, source.Name, r.Interpreter(), lockPath, temp, progress); err != nil {
		return Record{}, err
	}
	if err := os.RemoveAll(temp); err != nil {
		return Record{}, err
	}
	if err := inspect(&r, source); err != nil {
		return Record{}, err
	}
	err := write(&r)
	return r, err
}
