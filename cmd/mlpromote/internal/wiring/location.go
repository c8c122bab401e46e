package wiring

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/predicates"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/telemetry"
	"mlpromote.dev/mlpromote/signer"
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

// Keyring signs with the keys in the folder of keys, which it opens when it first needs them.
func (l Location) Keyring() *signer.Keyring {
	return &signer.Keyring{Dir: l.KeyDir(), Open: func(ctx context.Context, path string) (signer.Signer, error) {
		s, err := l.KeyFolder().Open(ctx, path)
		return checkedSigner{s}, err
	}}
}

// checkedSigner signs nothing but predicates that fit their schemas.
type checkedSigner struct{ signer.Signer }

// Sign holds a statement against the schema of its predicate, and signs it. Errors: CodeInvalid if it does not fit.
func (s checkedSigner) Sign(ctx context.Context, statement []byte) ([]byte, error) {
	if err := predicates.CheckText(statement); err != nil {
		return nil, registry.Errorf(registry.CodeOf(err), "sign: %w", err)
	}
	return s.Signer.Sign(ctx, statement)
}

// Tool is what statements and plans call this program.
func (l Location) Tool() evidence.ToolIdentity {
	return evidence.ToolIdentity{Name: "mlpromote", Version: l.Version}
}

// ReadNode reads a node document.
func ReadNode(path string) (artifact.Node, error) { return node.ParseFile(path) }

// signServed is a keyring of a service: that it does not sign is no mistake of whoever
// asked for something, and where its keys are is not told.
func signServed(keys *signer.Keyring) storage.SignEvidence {
	return func(ctx context.Context, role evidence.Role, statement []byte) ([]byte, error) {
		bundle, err := keys.Sign(ctx, role, statement)
		if err == nil || ctx.Err() != nil {
			return bundle, err
		}
		return nil, notSigned(role, err)
	}
}

func notSigned(role evidence.Role, err error) error {
	return registry.ForClients(
		registry.Lastingf(registry.CodeUnavailable, "%s", err.Error()),
		"the service cannot sign as %s: its operator finds the reason in its log", role)
}

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
