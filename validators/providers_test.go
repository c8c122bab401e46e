package validators_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// An engine passes where its preferred provider ran something, and nothing ran elsewhere.
func TestJudgeProviders(t *testing.T) {
	t.Parallel()
	const cpu, cuda = "CPUExecutionProvider", "CUDAExecutionProvider"
	ran := func(name string, nodes int) evidence.ProviderShare {
		return evidence.ProviderShare{Name: name, Nodes: nodes}
	}
	for name, c := range map[string]struct {
		declared []string
		shares   []evidence.ProviderShare
		want     string // part of the reason; empty for none
	}{
		"nothing declared":      {nil, []evidence.ProviderShare{ran(cpu, 3)}, ""},
		"all as declared":       {[]string{cpu}, []evidence.ProviderShare{ran(cpu, 3)}, ""},
		"a share, as declared":  {[]string{cuda, cpu}, []evidence.ProviderShare{ran(cpu, 3), ran(cuda, 4)}, ""},
		"an undeclared share":   {[]string{cuda}, []evidence.ProviderShare{ran(cpu, 3), ran(cuda, 4)}, "CPUExecutionProvider ran 3 of 7 nodes"},
		"an undeclared, idle":   {[]string{cuda}, []evidence.ProviderShare{ran(cpu, 0), ran(cuda, 4)}, ""},
		"the preferred is idle": {[]string{cuda, cpu}, []evidence.ProviderShare{ran(cpu, 3)}, "did not run any of its 3 nodes: CPUExecutionProvider ran 3"},
		"the runtime is silent": {[]string{cpu}, nil, "does not report"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reasons := validators.JudgeProviders(artifact.ProvidersOf(c.declared...), c.shares)
			switch {
			case c.want == "" && len(reasons) > 0:
				t.Errorf("reasons %v, want none", reasons)
			case c.want != "" && (len(reasons) != 1 || reasons[0].Code != validators.ReasonProvider || !strings.Contains(reasons[0].Message, c.want)):
				t.Errorf("reasons %v, want one that says %q", reasons, c.want)
			}
		})
	}
}
