package run

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// The words for a step that was not done say who did it.
func TestRemembered(t *testing.T) {
	t.Parallel()
	for want, origin := range map[string]toolchain.Origin{"cached": {}, "cached in staging": {Cache: "staging"}} {
		if got := CachedNote(origin); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A step says what is known of it, and nothing else.
func TestProvenanceOfAStep(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step Step
		want map[string]any // beside cached, elapsedNs and options
	}{
		"done here": {Step{}, map[string]any{}},
		"done by another": {Step{Outcome: toolchain.Outcome{Cached: true, Origin: toolchain.Origin{Cache: "oci://host/cache",
			Signer: "key"}}}, map[string]any{"cachedIn": "oci://host/cache", "doneBy": "key"}},
		"reproducible":         {Step{Reproducible: evidence.ReproducibleBytes}, map[string]any{"reproducible": evidence.ReproducibleBytes}},
		"by a table of ranges": {Step{ranges: digest.FromString("table")}, map[string]any{"ranges": digest.FromString("table")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.step.Provenance().Annotations
			if got["cached"] != c.step.Outcome.Cached {
				t.Errorf("cached is %v, want %t", got["cached"], c.step.Outcome.Cached)
			}
			for _, common := range []string{"cached", "elapsedNs", "options"} {
				delete(got, common)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What held a driver is said of the step, and nothing where nobody knows.
func TestProvenanceSaysWhatWasEnforced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		enforced toolchain.Enforced
		want     string
	}{
		{toolchain.Enforced{Sandbox: toolchain.SandboxNamespaces, Inputs: toolchain.InputsReadOnly, NoNetwork: true}, `"noNetwork":true`},
		{toolchain.Enforced{}, ""},
	} {
		step := Step{Name: "compile", Outcome: toolchain.Outcome{Key: digest.FromString("key"), Enforced: c.enforced}}
		said, ok := step.Provenance().Annotations["enforced"]
		text, err := json.Marshal(said)
		if err != nil {
			t.Fatal(err)
		}
		if ok != (c.want != "") || ok && !strings.Contains(string(text), c.want) {
			t.Errorf("%+v: provenance says %s", c.enforced, text)
		}
	}
}
