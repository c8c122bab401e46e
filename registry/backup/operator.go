package backup

import (
	"path"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// OperatorFiles returns the patterns, as in [path.Match], of files that an operator writes into
// a data directory: settings, policy, node types, public keys and certificates. A snapshot has
// only such files. Other files of a data directory, such as the journal of its database, could
// change the catalog that was checked.
func OperatorFiles() []string {
	return []string{"*.yaml", "*.pub", "*.pem", "*.crt", "keys/*.pub", "node-types/*.json"}
}

// checkFiles refuses a snapshot with files that a backup never writes. Errors: CodeTrust.
func checkFiles(where string, files []File) error {
	for i, f := range files {
		if !writes(f.Path) || f.Size < 0 {
			return registry.Errorf(registry.CodeTrust,
				"%s names %q, which is not a file of a backup: the backup was changed", where, f.Path)
		}
		if slices.ContainsFunc(files[:i], func(o File) bool { return o.Path == f.Path }) {
			return registry.Errorf(registry.CodeTrust, "%s names %q twice: the backup was changed", where, f.Path)
		}
	}
	return nil
}

// writes reports whether a snapshot may have a file at a path.
func writes(name string) bool {
	if name == catalogFile || name == contentFile {
		return true
	}
	inside, ok := strings.CutPrefix(name, filesFolder+"/")
	return ok && slices.ContainsFunc(OperatorFiles(), func(pattern string) bool {
		matches, _ := path.Match(pattern, inside)
		return matches
	})
}
