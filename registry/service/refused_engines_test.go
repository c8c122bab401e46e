package service_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// A promotion that some engines alone prevent says how many could be promoted without them. Where no
// engine could, it says nothing of the kind.
func TestRefusalNamesTheEnginesInTheWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failing int // engines, from the last one
		hint    string
	}{
		"one of three": {1, "2 engines could be promoted alone: remove the variant or target of linux-amd64-v3/int8 from the spec"},
		"two of three": {2, "1 engine could be promoted alone: remove the variant or target of linux-amd64-v3/fp32, linux-amd64-v3/int8 from the spec"},
		"all":          {3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			r := w.Build(t, registrytest.Build{})
			w.Sign(t, r)
			for i, label := range []string{"linux-amd64-v1/fp32", "linux-amd64-v3/fp32", "linux-amd64-v3/int8"} {
				verdict := evidence.VerdictPass
				if i >= 3-c.failing {
					verdict = evidence.VerdictFail
				}
				for _, e := range r.Engines {
					if e.Label() == label {
						w.AttachTo(t, "staging", r, e.Digest, evidence.PredicateParity, registrytest.Report(r, e, verdict))
					}
				}
			}
			_, err := w.Promote(t.Context(), api.PromoteRequest{Model: r.Model})
			hints := strings.Join(registry.Hints(err), "\n")
			if registry.CodeOf(err) != registry.CodePolicy ||
				strings.Contains(hints, "could be promoted alone") != (c.hint != "") || !strings.Contains(hints, c.hint) {
				t.Errorf("error %v, hints %q; want CodePolicy and %q", err, hints, c.hint)
			}
		})
	}
}
