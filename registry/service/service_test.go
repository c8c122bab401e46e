package service_test

import (
	"context"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

func TestInterface(t *testing.T) {
	t.Parallel()
	registrytest.TestInterface(t, func(t *testing.T) registrytest.Registry { return setup(t).Registry })
}

// What holds where content is beside the catalog holds where it is in another registry.
func TestInterfaceOverAnotherRegistry(t *testing.T) {
	t.Parallel()
	registrytest.TestInterface(t, func(t *testing.T) registrytest.Registry { return setup(t, external("staging", "prod")).Registry })
}

func TestNewRefusesWhatIsMissing(t *testing.T) {
	t.Parallel()
	good := setup(t).config
	for name, remove := range map[string]func(c *backend.Backend){
		"everything":   func(c *backend.Backend) { *c = backend.Backend{} },
		"catalog":      func(c *backend.Backend) { c.Catalog = nil },
		"records":      func(c *backend.Backend) { c.Records = nil },
		"listing":      func(c *backend.Backend) { c.Listing = nil },
		"intents":      func(c *backend.Backend) { c.Intents = nil },
		"content":      func(c *backend.Backend) { c.Content = nil },
		"verify":       func(c *backend.Backend) { c.Verify = nil },
		"sign":         func(c *backend.Backend) { c.Sign = nil },
		"mirror":       func(c *backend.Backend) { c.Mirror, c.Environments.List[1].Registry = nil, host },
		"environments": func(c *backend.Backend) { c.Environments = policy.Environments{} },
		"chain":        func(c *backend.Backend) { c.Environments.List[1].From = "moon" },
	} {
		c := good
		c.Environments.List = append([]policy.Environment{}, good.Environments.List...)
		remove(&c)
		if s, err := service.New(c); registry.CodeOf(err) != registry.CodeInvalid || s != nil {
			t.Errorf("without %s: service %v, error %v, want CodeInvalid", name, s, err)
		}
	}
	w := setup(t, func(c *backend.Backend) { c.Now = nil })
	w.Build(t, registrytest.Build{})
	events, err := w.History(t.Context(), history.HistoryQuery{Limit: 1})
	if err != nil || len(events) != 1 || events[0].Time.IsZero() {
		t.Errorf("without a clock: events %v, error %v, want the time of one", events, err)
	}
}

// Every kind of event has who asked for it, and its hash covers that.
func TestHistoryNamesThePrincipal(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Interface = as{w.service, "token:ci"}
	first := w.Promoted(t, registrytest.Build{})
	w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	if _, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: first.Model, Reason: "bad"}); err != nil {
		t.Fatal(err)
	}
	if err := w.SetHold(t.Context(), "prod", first.Model, "still bad"); err != nil {
		t.Fatal(err)
	}
	w.Interface = as{w.service, ""}
	if err := w.ReleaseHold(t.Context(), api.HoldRelease{Environment: "prod", Model: first.Model, Reason: "mended"}); err != nil {
		t.Fatal(err)
	}
	w.Interface = w.service
	w.Build(t, registrytest.Build{Version: "1.2.0", Salt: "c"})
	events, err := w.History(t.Context(), history.HistoryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[history.EventKind]bool)
	for i, e := range events {
		want := "token:ci"
		if i >= len(events)-2 {
			want = ""
		}
		kinds[e.Kind] = true
		if e.Principal != want {
			t.Errorf("row %d, %s, is by %q, want %q", e.Seq, e.Kind, e.Principal, want)
		}
	}
	if len(kinds) != 6 {
		t.Errorf("there are events of the kinds %v, want all six", kinds)
	}
	var before history.Event
	if events[0].Principal = "token:mallory"; events[0].VerifyChain(before) == nil {
		t.Error("another name in a row is not noticed")
	}
}

// as is a registry that somebody asks.
type as struct {
	api.Interface
	name string
}

func (a as) in(ctx context.Context) context.Context {
	return storage.WithPrincipal(ctx, storage.Principal{Name: a.name})
}

func (a as) Publish(ctx context.Context, p api.Publication) (history.Head, error) {
	return a.Interface.Publish(a.in(ctx), p)
}

func (a as) Attach(ctx context.Context, e api.Attachment) (registry.Digest, error) {
	return a.Interface.Attach(a.in(ctx), e)
}

func (a as) Promote(ctx context.Context, r api.PromoteRequest) (api.Promotion, error) {
	return a.Interface.Promote(a.in(ctx), r)
}

func (a as) Rollback(ctx context.Context, r api.RollbackRequest) (api.Promotion, error) {
	return a.Interface.Rollback(a.in(ctx), r)
}

func (a as) SetHold(ctx context.Context, environment, model, reason string) error {
	return a.Interface.SetHold(a.in(ctx), environment, model, reason)
}

func (a as) ReleaseHold(ctx context.Context, r api.HoldRelease) error {
	return a.Interface.ReleaseHold(a.in(ctx), r)
}
