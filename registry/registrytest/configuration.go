package registrytest

import (
	"sync"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Configured is a catalog that keeps the agreed configuration.
type Configured interface {
	storage.Catalog
	history.Configurations
}

// TestConfigurations is the contract of [history.Configurations].
func TestConfigurations(t *testing.T, open func(t *testing.T) Configured) {
	for name, test := range map[string]func(*testing.T, Configured){
		"nothing is agreed at first":     testNothingAgreed,
		"first fills what nobody said":   testFirstFills,
		"replaced by compare and swap":   testConfigure,
		"a refused change keeps it":      testConfigureUndone,
		"of many that are first one won": testFirstRace,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func wantAgreed(t *testing.T, c history.Configurations, want history.Configuration) {
	t.Helper()
	got, err := c.Agreed(t.Context(), history.Configuration{})
	must(t, err)
	wantEqual(t, got, want)
}

func testNothingAgreed(t *testing.T, c Configured) {
	wantAgreed(t, c, history.Configuration{})
}

func testFirstFills(t *testing.T, c Configured) {
	verb := history.Configuration{Environments: d("environments")}
	got, err := c.Agreed(t.Context(), verb)
	must(t, err)
	wantEqual(t, got, verb)
	service := history.Configuration{Environments: d("other"), Access: d(""), Promoter: d("key")}
	want := history.Configuration{Environments: d("environments"), Access: d(""), Promoter: d("key")}
	got, err = c.Agreed(t.Context(), service)
	must(t, err)
	wantEqual(t, got, want)
	wantAgreed(t, c, want)
	wantEqual(t, len(collect(t, c.History(t.Context(), history.HistoryQuery{}))), 0)
}

// configure is a change that replaces the agreed configuration.
func configure(expect, to history.Configuration) storage.Change {
	return storage.Change{
		Event:     history.Event{Time: begin(), Kind: history.EventConfigure, Reason: "prod asks for more"},
		Configure: &history.ConfigurationMove{Expect: expect, To: to},
	}
}

func testConfigure(t *testing.T, c Configured) {
	first := history.Configuration{Environments: d("1"), Access: d("1"), Promoter: d("1")}
	second := history.Configuration{Environments: d("2"), Access: d("1")}
	apply(t, c, configure(history.Configuration{}, first))
	wantAgreed(t, c, first)
	apply(t, c, configure(first, second))
	agreed := history.Configuration{Environments: d("2"), Access: d("1"), Promoter: d("1")}
	wantAgreed(t, c, agreed)
	_, err := c.Apply(t.Context(), configure(first, first))
	wantCode(t, err, registry.CodeConflict)
	wantAgreed(t, c, agreed)
	events := collect(t, c.History(t.Context(), history.HistoryQuery{Kind: history.EventConfigure}))
	wantEqual(t, len(events), 2)
	wantEqual(t, events[1].Environment+events[1].Model, "")
}

func testConfigureUndone(t *testing.T, c Configured) {
	change := move("a", "other", "1.0.0")
	change.Configure = &history.ConfigurationMove{To: history.Configuration{Environments: d("1")}}
	_, err := c.Apply(t.Context(), change)
	wantCode(t, err, registry.CodeConflict)
	wantAgreed(t, c, history.Configuration{})
	change = move("a", "", "1.0.0")
	change.Configure = &history.ConfigurationMove{Expect: history.Configuration{Environments: d("1")}}
	_, err = c.Apply(t.Context(), change)
	wantCode(t, err, registry.CodeConflict)
	_, err = c.Head(t.Context(), "prod", "a")
	wantCode(t, err, registry.CodeNotFound)
}

func testFirstRace(t *testing.T, c Configured) {
	var all sync.WaitGroup
	answers := make([]history.Configuration, 16)
	for i := range answers {
		all.Go(func() {
			var err error
			answers[i], err = c.Agreed(t.Context(), history.Configuration{Environments: d(string(rune('a' + i)))})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, got := range answers {
		wantEqual(t, got, answers[0])
	}
	wantAgreed(t, c, answers[0])
}
