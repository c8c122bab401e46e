package wiring_test

import (
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Every signature of the program passes this keyring: no path signs what its schema refuses.
func TestKeyringSignsOnlyWhatFitsItsSchema(t *testing.T) {
	t.Parallel()
	l := wiring.Location{Data: t.TempDir(), Getenv: func(string) string { return "secret" }}
	if _, _, err := l.KeyFolder().New(""); err != nil {
		t.Fatal(err)
	}
	keys := l.Keyring()
	signer, err := keys.Signer(t.Context(), evidence.RoleVerifier)
	if err != nil {
		t.Fatal(err)
	}
	about := evidence.StatementSubject{Digest: evidence.NewDigestSet("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")}
	for name, c := range map[string]struct {
		predicateType string
		predicate     any
		want          registry.Code // "": it is signed
	}{
		"signature":                   {evidence.PredicateSign, struct{}{}, ""},
		"quarantine":                  {evidence.PredicateQuarantine, evidence.Quarantine{Reason: "a test"}, ""},
		"report of nothing":           {evidence.PredicateParity, struct{}{}, registry.CodeInvalid},
		"summary without destination": {evidence.PredicateVSA, evidence.VSA{VerificationResult: evidence.VSAPassed, VerifiedLevels: []string{evidence.VSALevelParity}}, registry.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			statement, err := evidence.NewStatement(c.predicateType, c.predicate, about)
			if err != nil {
				t.Fatal(err)
			}
			for by, sign := range map[string]func() ([]byte, error){
				"keyring": func() ([]byte, error) { return keys.Sign(t.Context(), evidence.RoleVerifier, statement) },
				"signer":  func() ([]byte, error) { return signer.Sign(t.Context(), statement) },
			} {
				bundle, err := sign()
				if c.want == "" && err != nil || c.want != "" && !registry.HasCode(err, c.want) {
					t.Errorf("%s: got error %v, want code %q", by, err, c.want)
				}
				if (len(bundle) > 0) != (c.want == "") {
					t.Errorf("%s: got a bundle of %d bytes", by, len(bundle))
				}
			}
		})
	}
}
