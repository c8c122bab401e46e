package installed

import (
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/toolchains"
)

// Root returns the default folder of installs and other caches: cache, the value of
// MLPROMOTE_CACHE, or mlpromote in the user's cache directory. Errors: CodeInvalid if there is
// no such directory.
func Root(cache string) (string, error) {
	if cache != "" {
		return filepath.Abs(cache)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", registry.Errorf(registry.CodeInvalid, "no cache directory: set MLPROMOTE_CACHE: %w", err)
	}
	return filepath.Join(dir, "mlpromote"), nil
}

// Folder returns the folder of installs: installs, the value of MLPROMOTE_INSTALLS, or that in the folder of caches,
// where cache is the value of MLPROMOTE_CACHE. Errors: CodeInvalid if there is no such directory.
func Folder(installs, cache string) (string, error) {
	if installs != "" {
		return filepath.Abs(installs)
	}
	root, err := Root(cache)
	return In(root), err
}

// In returns the default folder of installs, which is in the folder of caches.
func In(root string) string { return filepath.Join(root, "toolchains") }

// Runtimes returns the newest installed version of each toolchain that runs engines, by its name. Installs that are
// damaged do not count, nor do versions that no target can ask for, such as 1.0rc1: no engine needs them.
func Runtimes(folder string) map[string]string {
	runtimes := make(map[string]string)
	installs, _ := records(folder, func(name string) bool { return IsRuntime(name) || sharer(name) != "" })
	for _, r := range installs {
		if sharing := sharer(r.Name); sharing != "" && r.Host == nil {
			r.Name = sharing
		}
		if !IsRuntime(r.Name) {
			continue
		}
		if (artifact.Constraint{Exact: r.Version}).Validate() != nil || r.Version == "" {
			continue
		}
		if have := runtimes[r.Name]; artifact.CompareVersions(have, r.Version) <= 0 {
			runtimes[r.Name] = r.Version
		}
	}
	return runtimes
}

// sharer returns the runtime that shares the install of another toolchain, or "".
func sharer(toolchain string) string {
	for _, t := range toolchains.All() {
		if t.Shares != "" && t.Shares == toolchain {
			return t.Name
		}
	}
	return ""
}

// IsRuntime reports whether a toolchain runs engines. Toolchains without a driver count: they come with a manifest.
func IsRuntime(toolchain string) bool {
	t, known := toolchains.Find(toolchain)
	return t.Engines || !known
}
