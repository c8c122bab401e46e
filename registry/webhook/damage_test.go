package webhook_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/webhook"
)

// harm adds damage to content of a repository.
func (w *world) harm(t *testing.T, name, repository string) storage.Damage {
	t.Helper()
	w.clock.Pass(time.Second)
	d := storage.Damage{Digest: digest.FromString(name), Kind: storage.DamageChanged, Found: w.clock.Now(), Repositories: []string{repository}}
	if err := w.config.Damages.Put(t.Context(), string(d.Digest), d); err != nil {
		t.Fatal(err)
	}
	return d
}

func (r received) damage(t *testing.T) []storage.Damage {
	t.Helper()
	var p webhook.DamagePayload
	if err := json.Unmarshal(r.body, &p); err != nil || p.Type != history.EventDamage || len(p.Data) == 0 || !p.Timestamp.Equal(p.Data[0].Found) {
		t.Fatalf("the payload is %s, error %v", r.body, err)
	}
	return p.Data
}

// Damage is delivered once, together with all damage found since the last delivery, to the
// webhooks that want it. It does not depend on events, and events do not depend on it.
func TestDamageIsTold(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.config.Damages = mem.NewTable[storage.Damage]()
	w.harm(t, "before there was a webhook", "prod/digits")
	w.register(t, "h", nil)
	d := w.deliverer(t)
	if got := w.round(t, d); len(got) != 0 {
		t.Fatalf("%d requests before there is damage, want 0", len(got))
	}
	first, second := w.harm(t, "b", "prod/digits"), w.harm(t, "a", "staging/other")
	got := w.round(t, d)
	if len(got) != 1 {
		t.Fatalf("%d requests, want 1", len(got))
	}
	if told := got[0].damage(t); len(told) != 2 || told[0].Digest != first.Digest || told[1].Digest != second.Digest {
		t.Errorf("delivered %+v, want both, in the order in which they were found", told)
	}
	w.happen(t, "prod", history.EventPromote)
	if got := w.round(t, d); len(got) != 1 || got[0].event(t).Kind != history.EventPromote {
		t.Errorf("%d requests for an event, want 1", len(got))
	}
	if got := w.round(t, d); len(got) != 0 {
		t.Errorf("%d requests for damage that was delivered, want 0", len(got))
	}
	w.harm(t, "c", "prod/digits")
	w.clock.Pass(time.Hour) // and the lease runs out
	if got := w.round(t, w.deliverer(t)); len(got) != 1 || len(got[0].damage(t)) != 1 {
		t.Errorf("another replica sends %d requests, want 1 with the new damage", len(got))
	}
}

// Webhooks with an environment, a model or kinds receive the damage that matches.
func TestDamageIsTakenByFilter(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.config.Damages = mem.NewTable[storage.Damage]()
	for id, edit := range map[string]func(*storage.Webhook){
		"prod":    func(h *storage.Webhook) { h.Environment = "prod" },
		"staging": func(h *storage.Webhook) { h.Environment = "staging" },
		"model":   func(h *storage.Webhook) { h.Model = "digits" },
		"other":   func(h *storage.Webhook) { h.Model = "other" },
		"damage":  func(h *storage.Webhook) { h.Kinds = []history.EventKind{history.EventDamage} },
		"attach":  func(h *storage.Webhook) { h.Kinds = []history.EventKind{history.EventAttach} },
	} {
		w.register(t, id, edit)
	}
	w.harm(t, "x", "prod/digits/sources")
	told := make(map[string]bool)
	for _, r := range w.round(t, w.deliverer(t)) {
		r.damage(t)
		id, _, _ := strings.Cut(r.header.Get("webhook-id"), ".")
		told[id] = true
	}
	if want := map[string]bool{"prod": true, "model": true, "damage": true}; fmt.Sprint(told) != fmt.Sprint(want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

// A failed delivery is tried again later.
func TestDamageIsToldAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.config.Damages = mem.NewTable[storage.Damage]()
	requests := 0
	w.answer = func(int) int {
		if requests++; requests < 3 {
			return http.StatusInternalServerError
		}
		return http.StatusNoContent
	}
	w.register(t, "h", nil)
	w.harm(t, "x", "prod/digits")
	d := w.deliverer(t)
	for attempt := 1; attempt <= 3; attempt++ {
		if got := w.round(t, d); len(got) != 1 {
			t.Fatalf("attempt %d: %d requests", attempt, len(got))
		}
		if got := w.round(t, d); len(got) != 0 {
			t.Fatalf("after attempt %d: %d requests at once", attempt, len(got))
		}
		w.clock.Pass(time.Hour)
	}
	if state := w.state(t, "h"); state.Attempts != 0 || state.Damage.Digest == "" {
		t.Errorf("the state is %+v", state)
	}
}
