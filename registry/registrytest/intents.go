package registrytest

import (
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// TestIntents is the contract of [registry.Intents]. That a change ends them is part of
// [TestStore].
func TestIntents(t *testing.T, open func(t *testing.T) registry.Intents) {
	t.Run("begin and pending", func(t *testing.T) {
		t.Parallel()
		intents := open(t)
		wantPending(t, intents)
		first := intent("a", "1.0.0")
		must(t, intents.Begin(t.Context(), first))
		must(t, intents.Begin(t.Context(), intent("b", "1.0.0")))
		wantPending(t, intents, first, intent("b", "1.0.0"))
		must(t, intents.Begin(t.Context(), intent("a", "2.0.0")))
		wantPending(t, intents, intent("a", "2.0.0"), intent("b", "1.0.0"))
	})
	t.Run("end", func(t *testing.T) {
		t.Parallel()
		intents := open(t)
		must(t, intents.End(t.Context(), "prod", "a", d("1.0.0")))
		must(t, intents.Begin(t.Context(), intent("a", "2.0.0")))
		must(t, intents.Begin(t.Context(), intent("b", "2.0.0")))
		must(t, intents.End(t.Context(), "prod", "a", d("1.0.0"))) // it is for another release by now
		must(t, intents.End(t.Context(), "staging", "a", d("2.0.0")))
		wantPending(t, intents, intent("a", "2.0.0"), intent("b", "2.0.0"))
		must(t, intents.End(t.Context(), "prod", "a", d("2.0.0")))
		wantPending(t, intents, intent("b", "2.0.0"))
	})
}

func intent(model, release string) registry.Intent {
	return registry.Intent{Environment: "prod", Model: model, From: "staging", Release: d(release), Begun: begin()}
}

// wantPending wants intents by environment and model, in UTC to the microsecond.
func wantPending(t *testing.T, intents registry.Intents, want ...registry.Intent) {
	t.Helper()
	got, err := intents.Pending(t.Context())
	must(t, err)
	for i := range want {
		want[i].Begun = want[i].Begun.UTC().Truncate(time.Microsecond)
	}
	if len(got) != len(want) {
		t.Fatalf("pending are %v, want %v", got, want)
	}
	for i := range want {
		wantEqual(t, got[i], want[i])
	}
}
