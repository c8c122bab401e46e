package keyfile_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/keyfile"
)

// A keyring over key files asks for the password when something is first signed.
func Example() {
	dir, err := os.MkdirTemp("", "keys-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	public, err := keyfile.Generate(dir, signer.LocalKey, []byte(os.Getenv("COSIGN_PASSWORD")))
	if err != nil {
		log.Fatal(err)
	}
	ring := &signer.Keyring{Dir: dir, Open: func(_ context.Context, path string) (signer.Signer, error) {
		return keyfile.Open(path, []byte(os.Getenv("COSIGN_PASSWORD")))
	}}
	subject := evidence.StatementSubject{Digest: evidence.NewDigestSet(digest.FromString("a release"))}
	statement, err := evidence.NewStatement(evidence.PredicateSign, struct{}{}, subject)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	bundle, err := ring.Sign(ctx, evidence.RoleBuilder, statement)
	if err != nil {
		log.Fatal(err)
	}
	trust, err := signer.NewTrust([]trust.TrustEntry{{
		Key: filepath.Join(dir, "local.pub"), Roles: evidence.Roles(), Resources: []string{"oci://local/"},
	}}, os.ReadFile)
	if err != nil {
		log.Fatal(err)
	}
	claim, err := trust.Verify(ctx, bundle, "oci://local/staging/vision/digits")
	if err != nil {
		log.Fatal(err)
	}
	id, err := signer.KeyID(public)
	fmt.Println(claim.Signer == id, err)
	// Output: true <nil>
}
