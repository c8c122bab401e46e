package service_test

import (
	"fmt"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// A fault tells at most four of what the history does not explain, and how many more there are.
func TestFaultTellsFour(t *testing.T) {
	t.Parallel()
	for count, more := range map[int]string{1: "", 4: "", 5: "; and 1 more", 7: "; and 3 more"} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			r := w.Promoted(t, registrytest.Build{})
			last := w.last(t)
			for i := range count {
				w.AttachTo(t, "prod", r, r.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: fmt.Sprint("it crashes ", i)})
			}
			w.db.CutHistory(last)
			found, err := w.HistoryFaults(t.Context())
			must(t, err)
			if len(found) != 2 || found[0].Environment != "prod" || len(found[0].Manifests) != count { // the other is staging, which has a copy
				t.Fatalf("%d faults, the first of %d manifests in %s; want 2, the first of %d in prod",
					len(found), len(found[0].Manifests), found[0].Environment, count)
			}
			told := strings.Count(found[0].Detail, "no event of the history names it")
			if told != min(count, 4) || !strings.HasSuffix(found[0].Detail, "names it"+more) {
				t.Errorf("the detail tells %d, want %d, and then %q: %s", told, min(count, 4), more, found[0].Detail)
			}
		})
	}
}
