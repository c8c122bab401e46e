package keys

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/authority"
)

// UseTimestamps lets an authority give every signature of the folder a timestamp, after it gave one that
// the roots vouch for. It returns the file that says so. Errors: CodeConflict if the folder
// has an authority; those of the authority.
func (f Folder) UseTimestamps(ctx context.Context, url string) (path string, err error) {
	path = filepath.Join(f.Dir, authority.TimestampsFile)
	if err := free(path); err != nil {
		return "", err
	}
	stamps := authority.Timestamps{URL: url}
	if err := stamps.Validate(); err != nil {
		return "", err
	}
	if err := f.try(ctx, stamps); err != nil {
		return "", err
	}
	return path, f.write(path, []byte(stamps.Text()), 0o600)
}

// try signs something with a key that is forgotten at once.
func (f Folder) try(ctx context.Context, stamps authority.Timestamps) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	s, err := signer.New(key)
	if err != nil {
		return err
	}
	if s, err = f.sealed(s, stamps); err != nil {
		return err
	}
	subject := evidence.StatementSubject{Digest: evidence.NewDigestSet(digest.FromString("a try"))}
	statement, err := evidence.NewStatement(evidence.PredicateSign, struct{}{}, subject)
	if err != nil {
		return err
	}
	_, err = s.Sign(ctx, statement)
	return err
}
