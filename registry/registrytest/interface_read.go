package registrytest

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
)

// refused wants an error with a code whose message says something.
func refused(t *testing.T, err error, code registry.Code, says ...string) {
	t.Helper()
	if err == nil || !registry.HasCode(err, code) {
		t.Errorf("got error %v (%s), want one with code %s", err, registry.CodeOf(err), code)
		return
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error says nothing of %q: %v", text, err)
		}
	}
}

// headIs wants an environment's head to be a release, "" for none.
func headIs(t *testing.T, r Registry, environment string, want registry.Digest) history.Head {
	t.Helper()
	heads, err := r.Heads(t.Context(), environment, Model)
	must(t, err)
	if want == "" && len(heads) == 0 {
		return history.Head{}
	}
	if len(heads) != 1 || heads[0].Release != want {
		t.Fatalf("heads of %s are %+v, want one at %q", environment, heads, want)
	}
	return heads[0]
}

// events lists what happened of a kind.
func events(t *testing.T, r Registry, kind history.EventKind) []history.Event {
	t.Helper()
	all, err := r.History(t.Context(), history.HistoryQuery{Model: Model, Kind: kind})
	must(t, err)
	return all
}

// chained wants the whole history to be intact.
func chained(t *testing.T, r Registry) {
	t.Helper()
	all, err := r.History(t.Context(), history.HistoryQuery{})
	must(t, err)
	var before history.Event
	for _, e := range all {
		must(t, e.VerifyChain(before))
		before = e
	}
}

func testEnvironments(t *testing.T, r Registry) {
	es, err := r.Environments(t.Context())
	must(t, err)
	must(t, es.Validate())
	source, destination, err := es.Edge("", "")
	if err != nil || source.Name != "staging" || destination.Name != "prod" || es.Registry != "local" {
		t.Errorf("the edge goes from %q to %q in %q, error %v", source.Name, destination.Name, es.Registry, err)
	}
	heads, err := r.Heads(t.Context(), "", "")
	if err != nil || len(heads) != 0 {
		t.Errorf("an empty registry has the heads %v, error %v", heads, err)
	}
	_, err = r.Heads(t.Context(), "moon", "")
	refused(t, err, registry.CodeNotFound, "staging, prod")
}

func testPublish(t *testing.T, r Registry) {
	first := r.Build(t, Build{})
	if h := headIs(t, r, "staging", first.Digest); h.Version != "1.0.0" || h.Hold != "" || h.Since.IsZero() {
		t.Errorf("the head is %+v", h)
	}
	headIs(t, r, "prod", "")
	_, err := r.Publish(t.Context(), api.Publication{Model: Model, Release: first.Digest})
	must(t, err)
	if got := events(t, r, history.EventPublish); len(got) != 1 || got[0].Release != first.Digest || got[0].Version != "1.0.0" {
		t.Errorf("publishing twice is in history as %+v", got)
	}
	second := r.Build(t, Build{Version: "1.1.0"})
	headIs(t, r, "staging", second.Digest)
	if got := events(t, r, history.EventPublish); len(got) != 2 || got[1].Previous != first.Digest {
		t.Errorf("the second publication is in history as %+v", got)
	}
	_, err = r.Publish(t.Context(), api.Publication{Model: Model, Release: d("nowhere")})
	refused(t, err, registry.CodeNotFound)
	_, err = r.Publish(t.Context(), api.Publication{Model: Model, Release: second.Limits})
	refused(t, err, registry.CodeInvalid)
	headIs(t, r, "staging", second.Digest)
	chained(t, r)
}

func testInspect(t *testing.T, r Registry) {
	release := r.Build(t, Build{})
	if release.Model != Model || release.Tag() != "1.0.0" || len(release.Engines) != 3 || release.Engines[0].Bytes == 0 {
		t.Fatalf("the release was read as %+v", release)
	}
	for _, name := range []string{"", "1.0.0", "current", string(release.Digest)} {
		got, err := r.Release(t.Context(), "staging", Model, name)
		if err != nil || got.Digest != release.Digest {
			t.Errorf("%q is release %s, error %v", name, got.Digest, err)
		}
	}
	for _, c := range []struct{ environment, model, name string }{
		{"moon", Model, ""}, {"prod", Model, ""}, {"staging", Model, "2.0.0"}, {"staging", "vision/letters", ""}, {"prod", Model, string(release.Digest)},
	} {
		_, err := r.Release(t.Context(), c.environment, c.model, c.name)
		refused(t, err, registry.CodeNotFound)
	}
	claims, ignored, err := r.Claims(t.Context(), "staging", release)
	if err != nil || len(claims)+ignored.IgnoredCount != 0 {
		t.Errorf("claims before there are any: %v, %v, error %v", claims, ignored, err)
	}
	_, _, err = r.Claims(t.Context(), "moon", release)
	refused(t, err, registry.CodeNotFound)
}
