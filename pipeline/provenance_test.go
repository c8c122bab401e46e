package pipeline

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

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
		step := takenStep{name: "compile", outcome: toolchain.Outcome{Key: digest.FromString("key"), Enforced: c.enforced}}
		said, ok := step.provenance().Annotations["enforced"]
		text, err := json.Marshal(said)
		if err != nil {
			t.Fatal(err)
		}
		if ok != (c.want != "") || ok && !strings.Contains(string(text), c.want) {
			t.Errorf("%+v: provenance says %s", c.enforced, text)
		}
	}
}
