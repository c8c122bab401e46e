package wiring

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteRules makes a new data directory with these rules in environments.yaml, and returns the path of
// that file. Where there is a registry already, or a folder of rules or keys is named, it does nothing and returns "":
// rules that somebody works with keep their meaning.
func (l Location) WriteRules(rules []byte) (string, error) {
	if l.Registry != "" || l.PolicyDir != "" || l.Database != "" || l.Keys != "" || l.HasDatabaseFile() {
		return "", nil
	}
	if has, err := l.KeyFolder().Any(); err != nil || has {
		return "", err
	}
	if err := l.Create(); err != nil {
		return "", err
	}
	path := filepath.Join(l.Data, "environments.yaml")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	_, err = f.Write(rules)
	return path, errors.Join(err, f.Close())
}
