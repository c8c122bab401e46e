package service_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// A job that comes late does not replace a newer version, also where it decided while the other one moved the head.
func TestLatePromotionOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	b := &busy{kind: history.EventPromote}
	w := setup(t, func(c *backend.Backend) { b.Catalog, c.Catalog = c.Catalog, b })
	w.proven(t, registrytest.Build{})
	newer := w.proven(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	late := api.PromoteRequest{Model: registrytest.Model, Ref: "1.0.0"}
	b.times, b.then = 1, func() {
		_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, Ref: "1.1.0"})
		must(t, err)
	}
	for range 2 { // the first finds the newer version when it moves the head, the second at once
		p, err := w.Promote(t.Context(), late)
		if registry.ExitCode(err) != 4 || !strings.Contains(err.Error(), "no-downgrade of release: prod has 1.1.0, which is newer") ||
			!strings.Contains(strings.Join(registry.Hints(err), " "), "promote --downgrade") || p.Decision.Allowed() {
			t.Errorf("error %v (exit code %d, hints %q), want 4 that names the newer version and the way out", err, registry.ExitCode(err), registry.Hints(err))
		}
		if w.head(t).Release != newer.Digest || len(w.pending(t)) != 0 {
			t.Errorf("the head is %+v, the intents are %v; want the newer version, and none", w.head(t), w.pending(t))
		}
	}
	late.Downgrade = true
	if p, err := w.Promote(t.Context(), late); err != nil || w.head(t).Version != "1.0.0" || p.Previous != newer.Digest {
		t.Errorf("as it was asked for: error %v, head %+v", err, w.head(t))
	}
	w.whole(t)
}
