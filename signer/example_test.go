package signer_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"log"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
)

// A verifier signs that an engine passed. Its key is trusted for staging, so the bundle gives a claim in
// staging and an error in prod.
func Example() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	verifier, err := signer.New(key)
	if err != nil {
		log.Fatal(err)
	}
	subject := evidence.StatementSubject{Name: "engine", Digest: evidence.NewDigestSet(digest.FromString("engine"))}
	statement, err := evidence.NewStatement(evidence.PredicateParity, map[string]string{"verdict": "pass"}, subject)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	bundle, err := verifier.Sign(ctx, statement)
	if err != nil {
		log.Fatal(err)
	}

	trust, err := signer.NewTrust([]trust.TrustEntry{{
		Key:       "verifier.pub",
		Roles:     []evidence.Role{evidence.RoleVerifier},
		Resources: []string{"oci://local/staging/"},
	}}, func(string) ([]byte, error) { return verifier.PublicKeyPEM(), nil })
	if err != nil {
		log.Fatal(err)
	}
	claim, err := trust.Verify(ctx, bundle, "oci://local/staging/vision/digits")
	fmt.Println(claim.Roles, claim.Statement.PredicateType, err)
	_, err = trust.Verify(ctx, bundle, "oci://local/prod/vision/digits")
	fmt.Println(registry.CodeOf(err))
	// Output:
	// [verifier] https://mlpromote.dev/parity/v1 <nil>
	// untrusted
}
