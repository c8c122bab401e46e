package registrytest

import (
	"sync"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// Configured is a catalog that keeps the agreed configuration.
type Configured interface {
	registry.Catalog
	registry.Configurations
}

// TestConfigurations is the contract of [registry.Configurations].
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

func wantAgreed(t *testing.T, c registry.Configurations, want registry.Configuration) {
	t.Helper()
	got, err := c.Agreed(t.Context(), registry.Configuration{})
	must(t, err)
	wantEqual(t, got, want)
}

func testNothingAgreed(t *testing.T, c Configured) {
	wantAgreed(t, c, registry.Configuration{})
}

func testFirstFills(t *testing.T, c Configured) {
	verb := registry.Configuration{Environments: d("environments")}
	got, err := c.Agreed(t.Context(), verb)
	must(t, err)
	wantEqual(t, got, verb)
	service := registry.Configuration{Environments: d("other"), Access: d(""), Promoter: d("key")}
	want := registry.Configuration{Environments: d("environments"), Access: d(""), Promoter: d("key")}
	got, err = c.Agreed(t.Context(), service)
	must(t, err)
	wantEqual(t, got, want)
	wantAgreed(t, c, want)
	wantEqual(t, len(collect(t, c.History(t.Context(), registry.HistoryQuery{}))), 0)
}

// configure is a change that replaces the agreed configuration.
func configure(expect, to registry.Configuration) registry.Change {
	return registry.Change{
		Event:     registry.Event{Time: begin(), Kind: registry.EventConfigure, Reason: "prod asks for more"},
		Configure: &registry.ConfigurationMove{Expect: expect, To: to},
	}
}

func testConfigure(t *testing.T, c Configured) {
	first := registry.Configuration{Environments: d("1"), Access: d("1"), Promoter: d("1")}
	second := registry.Configuration{Environments: d("2"), Access: d("1")}
	apply(t, c, configure(registry.Configuration{}, first))
	wantAgreed(t, c, first)
	apply(t, c, configure(first, second))
	agreed := registry.Configuration{Environments: d("2"), Access: d("1"), Promoter: d("1")}
	wantAgreed(t, c, agreed)
	_, err := c.Apply(t.Context(), configure(first, first))
	wantCode(t, err, registry.CodeConflict)
	wantAgreed(t, c, agreed)
	events := collect(t, c.History(t.Context(), registry.HistoryQuery{Kind: registry.EventConfigure}))
	wantEqual(t, len(events), 2)
	wantEqual(t, events[1].Environment+events[1].Model, "")
}

func testConfigureUndone(t *testing.T, c Configured) {
	change := move("a", "other", "1.0.0")
	change.Configure = &registry.ConfigurationMove{To: registry.Configuration{Environments: d("1")}}
	_, err := c.Apply(t.Context(), change)
	wantCode(t, err, registry.CodeConflict)
	wantAgreed(t, c, registry.Configuration{})
	change = move("a", "", "1.0.0")
	change.Configure = &registry.ConfigurationMove{Expect: registry.Configuration{Environments: d("1")}}
	_, err = c.Apply(t.Context(), change)
	wantCode(t, err, registry.CodeConflict)
	_, err = c.Head(t.Context(), "prod", "a")
	wantCode(t, err, registry.CodeNotFound)
}

func testFirstRace(t *testing.T, c Configured) {
	var all sync.WaitGroup
	answers := make([]registry.Configuration, 16)
	for i := range answers {
		all.Go(func() {
			var err error
			answers[i], err = c.Agreed(t.Context(), registry.Configuration{Environments: d(string(rune('a' + i)))})
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
