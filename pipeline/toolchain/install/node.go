package install

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/registry"
)

// node finds Node.js and asks for its version.
func node(ctx context.Context, source drivers.Source, run runner) (interpreter, error) {
	hint := "install Node.js " + source.Oldest + " or later with npm (on Debian: apt-get install nodejs npm)"
	path, err := exec.LookPath("node")
	if err != nil {
		return interpreter{}, registry.WithHint(registry.Lastingf(registry.CodeUnavailable,
			"%s needs Node.js: %w", source.Name, err), "%s", hint)
	}
	out, err := run(ctx, path, "--version")
	if err != nil {
		return interpreter{}, err
	}
	version := strings.TrimPrefix(strings.TrimSpace(out), "v")
	major, _, _ := strings.Cut(version, ".")
	have, err := strconv.Atoi(major)
	want, wantErr := strconv.Atoi(source.Oldest)
	if err != nil || wantErr != nil || have < want {
		return interpreter{}, registry.WithHint(registry.Lastingf(registry.CodeUnavailable,
			"%s needs Node.js %s or later: %s is %s", source.Name, source.Oldest, path, version), "%s", hint)
	}
	return interpreter{path, version}, nil
}

// fillNode installs exactly the packages in the lock, without running their scripts, and writes
// the record.
func fillNode(ctx context.Context, source drivers.Source,
	node interpreter, r Record, progress func(Progress)) (Record, error) {
	r.Node, r.Program = node.version, node.path
	progress(Progress{Stage: "installing the packages of " + source.Name})
	if err := os.MkdirAll(r.Dir, 0o777); err != nil {
		return Record{}, err
	}
	for name, content := range map[string][]byte{"package.json": source.Manifest, "package-lock.json": source.Lock} {
		if err := os.WriteFile(filepath.Join(r.Dir, name), content, 0o666); err != nil {
			return Record{}, err
		}
	}
	npm, err := exec.LookPath("npm")
	out := ""
	if err == nil {
		out, err = follow(ctx, settings(os.Environ()), func(string) {}, npm, "--prefix", r.Dir,
			"ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--no-update-notifier")
	}
	if err != nil {
		return Record{}, installFailed(ctx, source.Name, "npm", npmReason(out), r.Dir, err,
			"it needs npm and a package registry: npm's own settings are honoured")
	}
	if r.Versions, err = nodeVersions(filepath.Join(r.Dir, "node_modules")); err != nil {
		return Record{}, err
	}
	if r.Version = r.Versions[source.Package]; r.Version == "" {
		return Record{}, registry.Errorf(registry.CodeInternal,
			"%s: the install has no package %s", source.Name, source.Package)
	}
	err = write(&r)
	return r, err
}

// nodeVersions reads the versions of the packages in a folder of modules.
func nodeVersions(modules string) (map[string]string, error) {
	found := make(map[string]string)
	for _, pattern := range []string{"*/package.json", "@*/*/package.json"} {
		paths, err := filepath.Glob(filepath.Join(modules, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			var about struct{ Name, Version string }
			if err := json.Unmarshal(text, &about); err != nil {
				return nil, registry.Errorf(registry.CodeInternal, "%s: %w", path, err)
			}
			found[about.Name] = about.Version
		}
	}
	return found, nil
}
