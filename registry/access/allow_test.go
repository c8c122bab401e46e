package access_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Things that belong to no model are read with the permission to read any model, and changed with one for all.
func TestAllowRoute(t *testing.T) {
	t.Parallel()
	read, push := storage.PermissionRead, storage.PermissionPush
	for name, c := range map[string]struct {
		held               storage.Permission
		over               string // environment of the grant
		of                 string // model of the grant
		asks               storage.Permission
		environment, model string
		allowed            bool
	}{
		"reads with a grant for one model":       {read, "prod", model, read, "", "", true},
		"reads without a permission to read":     {push, "**", "**", read, "", "", false},
		"writes with a grant for one model":      {push, "prod", model, push, "", "", false},
		"writes with a grant for all models":     {push, "**", "**", push, "", "", true},
		"writes with a grant to read all":        {read, "**", "**", push, "", "", false},
		"reads its model":                        {read, "prod", model, read, "prod", model, true},
		"reads another model":                    {read, "prod", model, read, "prod", "text/mood", false},
		"reads its model in another environment": {read, "prod", model, read, "staging", model, false},
		"reads a model in no environment":        {read, "prod", model, read, "", model, false},
		"reads an environment without a model":   {read, "prod", model, read, "prod", "", false},
		"writes its model":                       {push, "prod", model, push, "prod", model, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := access.AllowRoute(as(t, c.held, c.over, c.of), c.asks, c.environment, c.model)
			if c.allowed && err != nil {
				t.Errorf("error %v, want none", err)
			}
			if !c.allowed && registry.CodeOf(err) != registry.CodeForbidden {
				t.Errorf("error %v, want CodeForbidden", err)
			}
		})
	}
	if err := access.AllowRoute(t.Context(), read, "", ""); registry.CodeOf(err) != registry.CodeUnauthenticated {
		t.Errorf("without a principal: error %v, want CodeUnauthenticated", err)
	}
}

// The hint of a refusal is a grant that would have been enough.
func TestRefusalsSayWhichGrantIsMissing(t *testing.T) {
	t.Parallel()
	ctx := as(t, storage.PermissionRead, "lab", "x")
	for name, c := range map[string]struct{ environment, model, says, hint string }{
		"a model in an environment": {"prod", model, "may not push vision/digits in prod", "--allow push --env prod --model vision/digits"},
		"an environment":            {"prod", "", "may not push anything in prod", "--allow push --env prod --model '**'"},
		"a model":                   {"", model, "may not push vision/digits in anything", "--allow push --env '**' --model vision/digits"},
		"what belongs to no model":  {"", "", "may not push things that belong to no model", "--allow push --env '**' --model '**'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := access.Allow(ctx, storage.PermissionPush, c.environment, c.model)
			if registry.CodeOf(err) != registry.CodeForbidden || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want CodeForbidden that says %q", err, c.says)
			}
			if hints := registry.Hints(err); len(hints) != 1 || !strings.HasSuffix(hints[0], c.hint) {
				t.Errorf("hints %q, want one that ends with %q", hints, c.hint)
			}
		})
	}
}

// A list of one environment, or of one model everywhere, has what the caller may read of it.
func TestListsOfAnEnvironment(t *testing.T) {
	t.Parallel()
	g := access.Guard(new(recorder))
	ctx := as(t, storage.PermissionRead, "prod", "vision/*")
	for name, of := range map[string][2]string{"an environment": {"prod", ""}, "a model": {"", model}} {
		heads, err := g.Heads(ctx, of[0], of[1])
		if err != nil || len(heads) != 1 || heads[0] != (history.Head{Environment: "prod", Model: model}) {
			t.Errorf("%s: heads %v, error %v; want that of %s in prod", name, heads, err, model)
		}
	}
	for name, of := range map[string]string{"an environment": "", "a model in an environment": model} {
		if _, err := g.Heads(ctx, "staging", of); registry.CodeOf(err) != registry.CodeForbidden {
			t.Errorf("%s that the caller may not read: error %v, want CodeForbidden", name, err)
		}
	}
}

// pages is a registry with ten events, of which those with an even number are for everybody.
type pages struct {
	recorder
	limits []int
}

func (p *pages) History(_ context.Context, q history.HistoryQuery) ([]history.Event, error) {
	p.limits = append(p.limits, q.Limit)
	var events []history.Event
	for seq := int64(1); seq <= 10; seq++ {
		e := history.Event{Seq: seq, Environment: "prod", Model: "text/mood"}
		if seq%2 == 0 {
			e.Model = model
		}
		if seq > q.After && (q.Before == 0 || seq < q.Before) {
			events = append(events, e)
		}
	}
	if q.Descending {
		slices.Reverse(events)
	}
	if q.Limit > 0 {
		events = events[:min(q.Limit, len(events))]
	}
	return events, nil
}

// A page has as many events as asked for, in either direction, though some of the history is hidden.
func TestGuardFillsPages(t *testing.T) {
	t.Parallel()
	ctx := as(t, storage.PermissionRead, "prod", model)
	for name, c := range map[string]struct {
		query history.HistoryQuery
		want  []int64
	}{
		"everything":        {history.HistoryQuery{}, []int64{2, 4, 6, 8, 10}},
		"the first page":    {history.HistoryQuery{Limit: 2}, []int64{2, 4}},
		"the next page":     {history.HistoryQuery{Limit: 2, After: 4}, []int64{6, 8}},
		"the last page":     {history.HistoryQuery{Limit: 2, After: 8}, []int64{10}},
		"nothing left":      {history.HistoryQuery{Limit: 2, After: 10}, nil},
		"exactly all":       {history.HistoryQuery{Limit: 5}, []int64{2, 4, 6, 8, 10}},
		"the latest page":   {history.HistoryQuery{Limit: 2, Descending: true}, []int64{10, 8}},
		"the one before it": {history.HistoryQuery{Limit: 2, Descending: true, Before: 8}, []int64{6, 4}},
		"the earliest page": {history.HistoryQuery{Limit: 2, Descending: true, Before: 4}, []int64{2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := new(pages)
			events, err := access.Guard(r).History(ctx, c.query)
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, e := range events {
				got = append(got, e.Seq)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("events %v, want %v", got, c.want)
			}
			if len(r.limits) > 2 {
				t.Errorf("the registry was asked for pages of %v, want one page and one that is larger", r.limits)
			}
		})
	}
}

// vanishing is a list of tokens that has one once, as when a database is put back to an earlier state.
type vanishing struct {
	storage.Tokens
	asked *int
}

func (v vanishing) ListTokens(context.Context) ([]storage.Token, error) {
	if *v.asked++; *v.asked == 3 {
		return make([]storage.Token, 1), nil
	}
	return nil, nil
}

// A service that has required a token once does so until it ends.
func TestOpenStaysClosed(t *testing.T) {
	t.Parallel()
	o := access.NewOpen(vanishing{asked: new(int)}, func() bool { return false })
	wantOpen(t, o, "before there is any token", true)
	wantOpen(t, o, "still before there is any token", true)
	wantOpen(t, o, "with a token", false)
	wantOpen(t, o, "without the token again", false)
}

// Names of hosts have letters, digits and three signs.
func TestValidHostCharacters(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "z", "A", "Z", "0", "9", ".", "-", "_"} {
		if !access.ValidHost(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{"`", "{", "@", "[", "/", ":", "\u00e4", "\x00"} {
		if access.ValidHost("x" + name) {
			t.Errorf("%q is accepted", "x"+name)
		}
	}
}
