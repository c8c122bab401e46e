package gc_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// noon is when the collections of the tests happen.
func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// name gives the digest of a word.
func name(word string) registry.Digest { return digest.FromString(word) }

// held is a record that is a year old.
func held(word string, manifest bool) storage.GCRecord {
	return storage.GCRecord{Digest: name(word), Manifest: manifest, Created: noon().AddDate(-1, 0, 0)}
}

// snapshot is a repository of a release with an engine and evidence about both.
func snapshot() gc.Snapshot {
	e := gc.Snapshot{Links: map[registry.Digest]artifact.Links{
		name("release"):        {Mentions: []registry.Digest{name("engine"), name("limits"), name("sources")}},
		name("engine"):         {Mentions: []registry.Digest{name("config"), name("weights")}},
		name("limits"):         {Mentions: []registry.Digest{name("limits.json")}},
		name("report"):         {Subject: name("engine"), Mentions: []registry.Digest{name("bundle")}},
		name("signed report"):  {Subject: name("report")},
		name("signed release"): {Subject: name("release")},
	}}
	for _, word := range []string{"release", "engine", "limits", "report", "signed report", "signed release"} {
		e.Records = append(e.Records, held(word, true))
	}
	for _, word := range []string{"config", "weights", "limits.json", "bundle"} {
		e.Records = append(e.Records, held(word, false))
	}
	return e
}

// edit changes the record of a word.
func edit(e *gc.Snapshot, word string, change func(*storage.GCRecord)) {
	i := slices.IndexFunc(e.Records, func(h storage.GCRecord) bool { return h.Digest == name(word) })
	change(&e.Records[i])
}

// words are all that an snapshot can hold.
func words() []string {
	return strings.Split("release,engine,limits,report,signed report,signed release,config,weights,limits.json,bundle", ",")
}

// staying lists what stays by the first word of each, and what is due.
func staying(outcomes []gc.Outcome) (stay, due []string) {
	for _, f := range outcomes {
		i := slices.IndexFunc(words(), func(word string) bool { return name(word) == f.Digest })
		if f.KeptBecause != "" {
			stay = append(stay, words()[i])
		}
		if f.Delete {
			due = append(due, words()[i])
		}
	}
	return stay, due
}

func TestEvaluate(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	condemnAll := func(e *gc.Snapshot) {
		for i := range e.Records {
			e.Records[i].Marked = noon().Add(-2 * day)
		}
	}
	for title, c := range map[string]struct {
		change func(e *gc.Snapshot)
		stay   string // "all", or words
		due    string
	}{
		"nothing needs it":   {func(*gc.Snapshot) {}, "", ""},
		"marked long enough": {condemnAll, "", "all"},
		"marked of late": {func(e *gc.Snapshot) {
			for i := range e.Records {
				e.Records[i].Marked = noon().Add(-time.Hour)
			}
		}, "", ""},
		"head": {func(e *gc.Snapshot) {
			e.Roots.Releases = map[registry.Digest]string{name("release"): "head of prod"}
		}, "all", ""},
		"tag of the release": {func(e *gc.Snapshot) {
			edit(e, "release", func(h *storage.GCRecord) { h.Tags = []string{"1.0.0"} })
		}, "all", ""},
		"marked and tagged since": {func(e *gc.Snapshot) {
			condemnAll(e)
			edit(e, "release", func(h *storage.GCRecord) { h.Tags = []string{"1.0.0"} })
		}, "all", ""},
		"a part that waits for its release": {func(e *gc.Snapshot) {
			condemnAll(e)
			edit(e, "engine", func(h *storage.GCRecord) { h.Tags = []string{"part-0123456789ab-linux-amd64-v3-int8"} })
		}, "engine,report,signed report,config,weights,bundle", "release,limits,signed release,limits.json"},
		"young evidence keeps its subject": {func(e *gc.Snapshot) {
			condemnAll(e)
			edit(e, "report", func(h *storage.GCRecord) { h.Created = noon().Add(-time.Hour) })
		}, "engine,report,signed report,config,weights,bundle", "release,limits,signed release,limits.json"},
		"evidence of the history stays without its subject": {func(e *gc.Snapshot) {
			condemnAll(e)
			e.Roots.Evidence = map[registry.Digest]string{name("report"): "history names it"}
		}, "report,signed report,bundle", "release,engine,limits,signed release,config,weights,limits.json"},
		"wanted elsewhere": {func(e *gc.Snapshot) {
			condemnAll(e)
			e.Wanted = map[registry.Digest]string{name("limits"): "part of a release"}
		}, "limits,limits.json", "release,engine,report,signed report,signed release,config,weights,bundle"},
		"a young blob alone": {func(e *gc.Snapshot) {
			condemnAll(e)
			edit(e, "weights", func(h *storage.GCRecord) { h.Created = noon().Add(-day).Add(time.Microsecond) })
		}, "weights", "release,engine,limits,report,signed report,signed release,config,limits.json,bundle"},
		"somebody asked for the release": {func(e *gc.Snapshot) {
			condemnAll(e)
			edit(e, "release", func(h *storage.GCRecord) { h.Marked = time.Time{} })
		}, "", ""},
		"somebody asked for the engine": {func(e *gc.Snapshot) {
			condemnAll(e)
			edit(e, "engine", func(h *storage.GCRecord) { h.Marked = noon().Add(-time.Hour) })
		}, "", "release,limits,signed release,limits.json"},
	} {
		e := snapshot()
		c.change(&e)
		stay, due := staying(gc.DefaultRetention().Evaluate(e, noon(), day))
		for what, list := range map[string]struct{ got, want []string }{"stays": {stay, list(c.stay)}, "due": {due, list(c.due)}} {
			if diff := cmp.Diff(list.want, list.got); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", title, what, diff)
			}
		}
	}
}

// list reads the words of a case.
func list(text string) []string {
	switch text {
	case "":
		return nil
	case "all":
		return words()
	}
	return strings.Split(text, ",")
}

// Who has a repository to himself waits for nothing, and takes nothing that is needed.
func TestEvaluateAlone(t *testing.T) {
	t.Parallel()
	e := snapshot()
	edit(&e, "limits", func(h *storage.GCRecord) { h.Tags = []string{"kept"} })
	stay, due := staying(gc.Retention{}.Evaluate(e, noon(), 0))
	if diff := cmp.Diff([]string{"limits", "limits.json"}, stay); diff != "" || len(stay)+len(due) != len(words()) {
		t.Errorf("stays (-want +got):\n%s\ndue: %q", diff, due)
	}
}

// A changes marks once, unmarks what is needed again and removes what is due.
func TestChanges(t *testing.T) {
	t.Parallel()
	marked := func(h storage.GCRecord) storage.GCRecord {
		h.Marked = noon().AddDate(0, -1, 0)
		return h
	}
	got := gc.Retention{}.Changes([]gc.Outcome{
		{GCRecord: held("stays", true), KeptBecause: "tag 1.0.0"},
		{GCRecord: marked(held("is needed again", true)), KeptBecause: "tag 1.0.0"},
		{GCRecord: held("is found", false)},
		{GCRecord: marked(held("waits", false))},
		{GCRecord: marked(held("goes", true)), Delete: true},
	}, noon())
	want := storage.GCChanges{
		At: noon(), Unmark: []storage.GCRecordKey{{Digest: name("is needed again"), Manifest: true}},
		Mark: []storage.GCRecordKey{{Digest: name("is found")}}, Delete: []storage.GCRecordKey{{Digest: name("goes"), Manifest: true}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// drawSnapshot makes any repository: cycles, dangling links and double records included.
func drawSnapshot(t *rapid.T) gc.Snapshot {
	e := gc.Snapshot{Links: make(map[registry.Digest]artifact.Links), Wanted: make(map[registry.Digest]string)}
	e.Roots = gc.Roots{Releases: make(map[registry.Digest]string), Evidence: make(map[registry.Digest]string)}
	some := rapid.Custom(func(t *rapid.T) registry.Digest { return name(fmt.Sprint(rapid.IntRange(0, 12).Draw(t, "n"))) })
	seldom := func(what string) bool { return rapid.IntRange(0, 9).Draw(t, what) == 0 }
	age := rapid.SampledFrom([]time.Duration{0, time.Hour, 23 * time.Hour, 25 * time.Hour, 1000 * time.Hour})
	for i := range rapid.IntRange(0, 12).Draw(t, "records") {
		h := storage.GCRecord{Digest: name(fmt.Sprint(i)), Manifest: rapid.Bool().Draw(t, "manifest"), Created: noon().Add(-age.Draw(t, "age"))}
		if rapid.Bool().Draw(t, "marked") {
			h.Marked = noon().Add(-age.Draw(t, "since"))
		}
		if h.Manifest {
			links := artifact.Links{Mentions: rapid.SliceOfN(some, 0, 3).Draw(t, "mentions")}
			if rapid.Bool().Draw(t, "refers") {
				links.Subject = some.Draw(t, "subject")
			}
			e.Links[h.Digest] = links
			if seldom("tagged") {
				h.Tags = []string{"t"}
			}
			if seldom("both") {
				e.Records = append(e.Records, storage.GCRecord{Digest: h.Digest, Created: h.Created})
			}
		}
		for what, m := range map[string]map[registry.Digest]string{"head": e.Roots.Releases, "recorded": e.Roots.Evidence, "wanted": e.Wanted} {
			if seldom(what) {
				m[h.Digest] = what
			}
		}
		e.Records = append(e.Records, h)
	}
	return e
}

// closure is the same rule as Judge's, written so that it can be believed: whatever touches
// something in the set comes in, until nothing does.
func closure(e gc.Snapshot, in []bool, subjects bool) {
	belongs := func(part, whole storage.GCRecord) bool {
		links := e.Links[whole.Digest]
		mine := e.Links[part.Digest]
		return whole.Manifest && (slices.Contains(links.Mentions, part.Digest) ||
			part.Manifest && mine.Subject != "" && mine.Subject == whole.Digest ||
			subjects && links.Subject == part.Digest)
	}
	for grown := true; grown; {
		grown = false
		for i, part := range e.Records {
			for k, whole := range e.Records {
				if !in[i] && in[k] && belongs(part, whole) {
					in[i], grown = true, true
				}
			}
		}
	}
}

// Judge agrees with the rule as it is written down, on any repository.
func TestEvaluateProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := drawSnapshot(t)
		const grace = 24 * time.Hour
		wait := rapid.SampledFrom([]time.Duration{0, grace}).Draw(t, "wait")
		stay, wantWait := make([]bool, len(e.Records)), make([]bool, len(e.Records))
		for i, h := range e.Records {
			stay[i] = h.Manifest && e.Roots.Releases[h.Digest] != "" || len(h.Tags) > 0 || e.Wanted[h.Digest] != "" || noon().Sub(h.Created) < grace
		}
		closure(e, stay, true)
		full := slices.Clone(stay)
		for i, h := range e.Records {
			stay[i] = stay[i] || e.Roots.Evidence[h.Digest] != ""
		}
		recorded := slices.Clone(stay)
		closure(e, recorded, false)
		for i, h := range e.Records {
			stay[i] = full[i] || recorded[i]
			wantWait[i] = !stay[i] && wait > 0 && (h.Marked.IsZero() || noon().Sub(h.Marked) < wait)
		}
		closure(e, wantWait, true)
		for i, f := range (gc.Retention{Grace: grace}).Evaluate(e, noon(), wait) {
			if (f.KeptBecause != "") != stay[i] {
				t.Fatalf("%d: stays because %q, want it to stay: %v", i, f.KeptBecause, stay[i])
			}
			if want := !stay[i] && !wantWait[i]; f.Delete != want {
				t.Fatalf("%d: due %v, want %v", i, f.Delete, want)
			}
		}
	})
}

// events is a history whose every row is a day younger than the one before; the last is a day old.
func events(rows ...history.Event) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		for i, e := range rows {
			e.Seq, e.Time = int64(i+1), noon().AddDate(0, 0, i-len(rows))
			if e.Model == "" {
				e.Model = "m"
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func promoted(release string) history.Event {
	return history.Event{Kind: history.EventPromote, Environment: "prod", Release: name(release)}
}

func TestRoots(t *testing.T) {
	t.Parallel()
	envs := policy.Environments{List: []policy.Environment{{Name: "staging"}, {Name: "prod", From: "staging"}}}
	attach := history.Event{Kind: history.EventAttach, Environment: "staging", Release: name("a"), Evidence: []registry.Digest{name("bundle")}}
	published := func(release string) history.Event {
		return history.Event{Kind: history.EventPublish, Environment: "staging", Release: name(release)}
	}
	for title, c := range map[string]struct {
		retention gc.Retention
		rows      []history.Event
		releases  []string
	}{
		"the last two":            {gc.Retention{Heads: 2}, []history.Event{promoted("a"), promoted("b"), promoted("c"), promoted("d")}, []string{"b", "c"}},
		"none":                    {gc.Retention{}, []history.Event{promoted("a"), promoted("b")}, nil},
		"each counts once":        {gc.Retention{Heads: 2}, []history.Event{promoted("a"), promoted("b"), promoted("c"), promoted("b"), promoted("c"), promoted("d")}, []string{"b", "c"}},
		"back to what was":        {gc.Retention{Heads: 1}, []history.Event{promoted("a"), promoted("b"), promoted("a")}, []string{"b"}},
		"ended within the time":   {gc.Retention{Period: 50 * time.Hour}, []history.Event{promoted("a"), promoted("b"), promoted("c"), promoted("d")}, []string{"b", "c"}},
		"nobody rolls back there": {gc.Retention{Heads: 9}, []history.Event{published("a"), published("b")}, nil},
		"an environment that is gone": {gc.Retention{Heads: 9}, []history.Event{
			{Kind: history.EventPublish, Environment: "gone", Release: name("a")}, {Kind: history.EventPublish, Environment: "gone", Release: name("b")}}, []string{"a"}},
		"a hold that ends": {gc.Retention{Heads: 1}, []history.Event{promoted("a"), promoted("b"),
			{Kind: history.EventHoldRelease, Environment: "prod", Release: name("b")}}, []string{"a"}},
		"a release that was never the head": {gc.Retention{Heads: 9},
			[]history.Event{promoted("a"), {Kind: history.EventAttach, Environment: "prod", Release: name("x")}, promoted("b")}, []string{"a"}},
		"evidence": {gc.Retention{}, []history.Event{attach}, nil},
	} {
		got, err := c.retention.Roots(envs, nil, nil, events(c.rows...), noon())
		if err != nil {
			t.Fatal(err)
		}
		var releases []registry.Digest
		for _, word := range c.releases {
			releases = append(releases, name(word))
		}
		var kept []registry.Digest
		if got["m"] != nil {
			for d := range got["m"].Releases {
				kept = append(kept, d)
			}
			if len(got["m"].Evidence) > 0 != (title == "evidence") {
				t.Errorf("%s: evidence %v", title, got["m"].Evidence)
			}
		}
		slices.Sort(kept)
		slices.Sort(releases)
		if !slices.Equal(kept, releases) {
			t.Errorf("%s: kept %v, want %v", title, kept, c.releases)
		}
	}
}

// An intent is abandoned after a day, or if its environment was removed. If its head has moved
// it stands: its mirror may have to be written.
func TestAbandonedIntents(t *testing.T) {
	t.Parallel()
	known := policy.Environments{List: []policy.Environment{{Name: "staging"}, {Name: "prod", From: "staging"}}}
	moved := history.Head{Environment: "prod", Model: "a", Release: name("r")}
	other := history.Head{Environment: "prod", Model: "a", Release: name("another")}
	for title, c := range map[string]struct {
		envs        policy.Environments
		environment string
		head        history.Head
		age         time.Duration
		want        string // part of the reason; empty: it stands
	}{
		"young":                                   {known, "prod", history.Head{}, history.IntentTime - time.Minute, ""},
		"young, over another head":                {known, "prod", other, 0, ""},
		"a day old":                               {known, "prod", history.Head{}, history.IntentTime, "24h0m0s"},
		"a day old, over another head":            {known, "prod", other, history.IntentTime, "24h0m0s"},
		"a month old, and its head moved":         {known, "prod", moved, 720 * time.Hour, ""},
		"young, of no environment":                {known, "canary", history.Head{}, 0, "no environment canary"},
		"of no environment, and its head moved":   {known, "canary", moved, 720 * time.Hour, ""},
		"young, without known environments":       {policy.Environments{}, "prod", history.Head{}, 0, ""},
		"a day old, without known environments":   {policy.Environments{}, "prod", history.Head{}, history.IntentTime, "24h0m0s"},
		"from the future, as of a clock set back": {known, "prod", history.Head{}, -time.Hour, ""},
	} {
		i := history.Intent{Environment: c.environment, Model: "a", Release: name("r"), Begun: noon().Add(-c.age)}
		got := i.Abandoned(c.envs, c.head, noon())
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", title, got, c.want)
		}
	}
}

// Heads and promotions under way keep releases, each for its model alone.
func TestRootsOfHeadsAndIntents(t *testing.T) {
	t.Parallel()
	heads := []history.Head{{Environment: "staging", Model: "a", Release: name("head")}}
	intents := []history.Intent{
		{Environment: "prod", From: "staging", Model: "a", Release: name("moving"), Begun: noon().Add(-23 * time.Hour)},
		{Environment: "canary", From: "staging", Model: "a", Release: name("abandoned"), Begun: noon().Add(-25 * time.Hour)},
	}
	got, err := gc.Retention{}.Roots(policy.Environments{}, heads, intents, events(), noon())
	want := map[string]*gc.Roots{"a": {Releases: map[registry.Digest]string{name("head"): "head of staging", name("moving"): "under way to prod"}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, (-want +got):\n%s", err, diff)
	}
	failing := func(yield func(history.Event, error) bool) { yield(history.Event{}, fmt.Errorf("lost")) }
	if got, err := (gc.Retention{}).Roots(policy.Environments{}, heads, nil, failing, noon()); err == nil || got != nil {
		t.Errorf("a history that cannot be read gave the roots %v (%v): want an error", got, err)
	}
}
