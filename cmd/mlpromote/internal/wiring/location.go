package wiring

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/telemetry"
)

// Waiting says why a verb does not go on at once.
func (l Location) Waiting(why string) { l.Note("waiting: %s", why) }

// Location says where a registry is, and with what it is opened.
type Location struct {
	Data      string // data directory
	PolicyDir string // folder of environments.yaml and access.yaml; empty: the data directory
	Keys      string // folder of signing keys; empty: keys in the data directory
	Registry  string // URL of a service; empty: the data directory
	Database  string // URL of the catalog; empty: a file in the data directory
	Storage   string // URL of the content; empty: the data directory
	TLSCA     string // PEM file of a CA of the service; empty: those of the system alone
	TakeOver  bool   // the catalog here becomes the owner of the content
	Version   string // of this program
	// MaxReferrers is how much adverse evidence about one subject each caller of a service may attach; 0: any.
	MaxReferrers int

	Getenv    func(name string) string
	Note      func(format string, args ...any) // tells people something
	Hashing   func() func(done, total int64)   // shows how much of a release was hashed
	Telemetry *telemetry.Telemetry             // of a service; nil for other verbs
}

// KeyDir is the folder of signing keys.
func (l Location) KeyDir() string {
	if l.Keys != "" {
		return l.Keys
	}
	return filepath.Join(l.Data, "keys")
}

// Tool is what statements and plans call this program.
func (l Location) Tool() evidence.ToolIdentity {
	return evidence.ToolIdentity{Name: "mlpromote", Version: l.Version}
}

// ReadNode reads a node document.
func ReadNode(path string) (artifact.Node, error) { return node.ParseFile(path) }

// IgnoreFile is the file that tells git what to ignore in a folder.
const IgnoreFile = ".gitignore"

// IgnoreAll keeps a folder out of version control.
func IgnoreAll(dir string) error {
	path := filepath.Join(dir, IgnoreFile)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, []byte("*\n"), 0o600)
}

// HasDatabaseFile reports whether the data directory has a catalog in a file.
func (l Location) HasDatabaseFile() bool { return l.Dir().Has(datadir.DatabaseFile) }

// Dir is the data directory.
func (l Location) Dir() datadir.Dir { return datadir.Dir{Path: l.Data} }
