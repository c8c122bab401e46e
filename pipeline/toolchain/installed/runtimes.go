package installed

import (
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
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

// Runtimes returns the newest installed version of each toolchain that has a runtime library, by its name. cache
// is the value of MLPROMOTE_CACHE. The result is empty if the installs cannot be read.
func Runtimes(cache string) map[string]string {
	runtimes := make(map[string]string)
	root, err := Root(cache)
	if err != nil {
		return runtimes
	}
	installs, err := records(root, func(string) bool { return true })
	if err != nil {
		return runtimes
	}
	for _, r := range installs {
		if have := runtimes[r.Name]; r.Library != "" && registry.CompareVersions(have, r.Version) <= 0 {
			runtimes[r.Name] = r.Version
		}
	}
	return runtimes
}
