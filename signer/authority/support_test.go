package authority_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/signertest"
)

const resource = "oci://local/prod/vision/digits"

func statement(t *testing.T) []byte {
	t.Helper()
	subject := evidence.StatementSubject{Digest: evidence.NewDigestSet(digest.FromString(t.Name()))}
	s, err := evidence.NewStatement(evidence.PredicateSign, struct{}{}, subject)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newSigner(t *testing.T) signer.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := signer.New(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// trusted is what environments.yaml says where it names files.
func trusted(files map[string][]byte, roots ...trust.Root) func() ([]trust.Root, func(string) ([]byte, error), error) {
	return func() ([]trust.Root, func(string) ([]byte, error), error) {
		return roots, func(path string) ([]byte, error) { return files[path], nil }, nil
	}
}

// stampsOf trusts the authority for timestamps, and nobody else.
func stampsOf(t *testing.T, a *signertest.Authority) func() ([]trust.Root, func(string) ([]byte, error), error) {
	t.Helper()
	return trusted(map[string][]byte{"tsa.pem": a.StampChain(t)}, trust.Root{Timestamps: "tsa.pem"})
}

func in(d time.Duration) storage.Clock { return func() time.Time { return time.Now().Add(d) } }

// again reports whether the program would say that trying again may help.
func again(err error) bool { return registry.ExitCode(err) == registry.ExitAgain }
