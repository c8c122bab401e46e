package pull_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/pull"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// silent is a registry whose resolve does not know of restrictions, as one that lies.
type silent struct {
	api.Interface
	answer api.Resolution
}

func (s silent) Resolve(_ context.Context, _ api.ResolveQuery) (api.Resolution, error) {
	return s.answer, nil
}

const prodEnvironment = "oci://local/prod/"

// A pull holds the engine against the list by itself, and keeps the list in the folder.
func TestPullHoldsAgainstRestrictions(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Promoted(t, registrytest.Build{})
	answer, err := w.Registry.Resolve(t.Context(), query("prod"))
	if err != nil {
		t.Fatal(err)
	}
	other := []evidence.Restriction{{Kind: evidence.RestrictOperator, Digest: r.Limits}}
	first := w.Restricting(t, "prod", other, nil)
	if _, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{}); err != nil {
		t.Fatalf("another library is restricted: %v", err)
	}
	kept, err := os.ReadFile(w.at(pull.Dir, "bundles", first.Digest.Encoded()+".sigstore.json"))
	if err != nil || digest.FromBytes(kept) != first.Digest {
		t.Errorf("the folder does not hold the list: %v", err)
	}
	second := w.Restricting(t, "prod", registrytest.SourceOf(r), nil)
	if _, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{}); !registry.HasCode(err, registry.CodeNoEngine) {
		t.Errorf("pull of what is restricted: error %v", err)
	}
	lying := w.Puller
	lying.Registry = silent{w.Registry.Interface, answer}
	if _, err := lying.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{}); !registry.HasCode(err, registry.CodePolicy) ||
		!strings.Contains(err.Error(), "is restricted") {
		t.Errorf("pull where resolve gives what is restricted: error %v", err)
	}
	staging := w.Restricting(t, "staging", registrytest.SourceOf(r), nil)
	third := w.Restricting(t, "prod", nil, registrytest.SourceOf(r))
	lifted, err := third.Next("oci://local/prod/", "by a stranger", w.Keys.KeyID(registrytest.Stranger), third.List.IssuedOn, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		list []byte
		code registry.Code
		says string
	}{
		{"none", nil, "", ""},
		{"the same", first.Bundle, "", ""},
		{"one that restricts it", second.Bundle, registry.CodePolicy, "is restricted"},
		{"one that lifts", third.Bundle, "", ""},
		{"of another environment", staging.Bundle, registry.CodeTrust, "trusts no signer of it as approver"},
		{"of a stranger", w.SignList(t, registrytest.Stranger, lifted), registry.CodeTrust, "trusts no signer of it as approver"},
		{"of a builder", w.SignList(t, "builder", lifted), registry.CodeTrust, "not trusted as approver"},
		{"garbage", []byte("none"), registry.CodeTrust, "trusts no signer of it as approver"},
		{"empty", []byte{}, registry.CodeTrust, "trusts no signer of it as approver"},
	} {
		_, err := w.Check(t.Context(), w.dir, pull.Expectation{Environment: "prod", Restrictions: c.list})
		if c.code == "" && err != nil || c.code != "" && (!registry.HasCode(err, c.code) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("with a list that is %s: error %v, want %q that says %q", c.name, err, c.code, c.says)
		}
	}
	for _, c := range []struct {
		name string
		list []byte
		code registry.Code
	}{
		{"none", nil, ""}, {"the same", first.Bundle, ""}, {"one that restricts it", second.Bundle, registry.CodePolicy}, {"garbage", []byte("none"), registry.CodeTrust},
		{"of another environment", staging.Bundle, registry.CodeTrust},
	} {
		known := func(environment string) []byte {
			if environment != prodEnvironment {
				t.Errorf("asked for the list of %s, want that of %s", environment, prodEnvironment)
			}
			return c.list
		}
		if _, err := w.Check(t.Context(), w.dir, pull.Expectation{Known: known}); (err == nil) != (c.code == "") || err != nil && !registry.HasCode(err, c.code) {
			t.Errorf("with an accepted trust bundle whose list is %s: error %v, want %q", c.name, err, c.code)
		}
	}
	foreign := w.at(pull.Dir, "bundles", staging.Digest.Encoded()+".sigstore.json")
	if err := os.WriteFile(foreign, staging.Bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Check(t.Context(), w.dir, pull.Expectation{}); err != nil {
		t.Errorf("with a list of another environment in the folder: %v", err)
	}
	if _, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Check(t.Context(), w.dir, pull.Expectation{Restrictions: second.Bundle}); !registry.HasCode(err, registry.CodeTrust) ||
		!strings.Contains(err.Error(), "is older than list 3") {
		t.Errorf("an older list than that of the folder: error %v", err)
	}
	older := func(string) []byte { return second.Bundle }
	if _, err := w.Check(t.Context(), w.dir, pull.Expectation{Known: older}); err != nil {
		t.Errorf("a trust bundle with an older list than that of the folder: %v", err)
	}
}
