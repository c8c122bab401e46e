package checkpoint_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/checkpoint"
	"mlpromote.dev/mlpromote/registry/history"
)

// check reads a history as everybody does, and compares it with checkpoints. It returns the kinds of
// faults; a broken chain is one of its own.
func check(t testing.TB, events []history.Event, seen ...checkpoint.Seen) (kinds []checkpoint.FaultKind, text string) {
	t.Helper()
	tree := new(checkpoint.Tree)
	for _, e := range events {
		if err := tree.Append(e); err != nil {
			if !registry.HasCode(err, registry.CodeTrust) {
				t.Fatal(err)
			}
			return []checkpoint.FaultKind{"broken"}, err.Error()
		}
	}
	faults, err := tree.Compare("local", seen)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range faults {
		kinds = append(kinds, f.Kind)
		lines = append(lines, f.Err().Error())
	}
	return kinds, strings.Join(lines, "\n")
}

// Whatever is done to the events under a checkpoint, at whichever place, is found, also where the
// chain of hashes is made again. A history that only grew is not blamed.
func TestEveryChangeUnderACheckpointIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(2, 40).Draw(rt, "events under the checkpoint")
		more := rapid.IntRange(0, 20).Draw(rt, "events after it")
		whole := historyOf(t, "event", size+more)
		held := seen(t, whole, size)
		if kinds, text := check(t, whole, held); len(kinds) > 0 {
			rt.Fatalf("the history itself: %s", text)
		}
		at := rapid.IntRange(0, size-1).Draw(rt, "place")
		changed := slices.Clone(whole)
		want := []checkpoint.FaultKind{checkpoint.Rewritten, checkpoint.Replaced}
		switch how := rapid.SampledFrom([]string{"truncate", "edit", "remove", "add", "swap", "fork"}).Draw(rt, "how"); how {
		case "truncate":
			changed, want = changed[:at], []checkpoint.FaultKind{checkpoint.Truncated}
		case "edit":
			changed[at].Reason += "!"
		case "remove":
			changed = slices.Delete(changed, at, at+1)
			want = append(want, checkpoint.Truncated)
		case "add":
			changed = slices.Insert(changed, at, history.Event{Kind: history.EventAttach, Reason: "added"})
		case "swap":
			other := (at + 1) % size
			changed[at], changed[other] = changed[other], changed[at]
		case "fork":
			changed = extend(t, changed[:at], "another", size+more-at)
		}
		wantOne(rt, rechained(t, slices.Clone(changed)), held, want)
		if len(changed) > 0 && !slices.Equal(hashes(changed), hashes(whole[:min(len(changed), len(whole))])) {
			wantOne(rt, changed, held, append(want, "broken"))
		}
	})
}

func wantOne(rt *rapid.T, events []history.Event, held checkpoint.Seen, want []checkpoint.FaultKind) {
	tree := new(checkpoint.Tree)
	for _, e := range events {
		if err := tree.Append(e); err != nil {
			if !slices.Contains(want, "broken") {
				rt.Fatal(err)
			}
			return
		}
	}
	faults, err := tree.Compare("local", []checkpoint.Seen{held})
	if err != nil || len(faults) != 1 || !slices.Contains(want, faults[0].Kind) || !registry.HasCode(faults[0].Err(), registry.CodeTrust) {
		rt.Fatalf("faults %+v (error %v), want one of %v", faults, err, want)
	}
}

func hashes(events []history.Event) (all []string) {
	for _, e := range events {
		all = append(all, string(e.Hash)+e.Reason)
	}
	return all
}

func TestFaultsAreNamed(t *testing.T) {
	t.Parallel()
	whole := historyOf(t, "event", 12)
	fork := extend(t, whole[:5], "another", 9)
	other := historyOf(t, "other", 12)
	elsewhere := seen(t, whole, 8)
	elsewhere.Origin.Registry = "elsewhere"
	unsigned := seen(t, fork, 11)
	unsigned.Counts = false
	for name, c := range map[string]struct {
		events []history.Event
		seen   []checkpoint.Seen
		kinds  []checkpoint.FaultKind
		says   string
	}{
		"it grew": {whole, []checkpoint.Seen{seen(t, whole, 1), seen(t, whole, 7), seen(t, whole, 12)}, nil, ""},
		"cut": {whole[:7], []checkpoint.Seen{seen(t, whole, 8)}, []checkpoint.FaultKind{checkpoint.Truncated},
			"FILE of 8: it covers 8 events, and the history has 7: 1 event missing at its end"},
		"empty":               {nil, []checkpoint.Seen{seen(t, whole, 8)}, []checkpoint.FaultKind{checkpoint.Truncated}, "the history has 0: 8 events missing at its end"},
		"rewritten":           {fork, []checkpoint.Seen{seen(t, whole, 8)}, []checkpoint.FaultKind{checkpoint.Rewritten}, "an event among 2 to 8 is not the one"},
		"rewritten after one": {fork, []checkpoint.Seen{seen(t, whole, 4), seen(t, whole, 8)}, []checkpoint.FaultKind{checkpoint.Rewritten}, "an event among 5 to 8 is not the one"},
		"forked":              {fork, []checkpoint.Seen{seen(t, whole, 8), seen(t, fork, 11)}, []checkpoint.FaultKind{checkpoint.Forked}, "FILE of 11 is signed too and contradicts it"},
		"forked at one size":  {whole, []checkpoint.Seen{seen(t, whole, 8), seen(t, fork, 8)}, []checkpoint.FaultKind{checkpoint.Forked}, "the registry showed two histories"},
		"no signature":        {fork, []checkpoint.Seen{seen(t, whole, 8), unsigned}, []checkpoint.FaultKind{checkpoint.Rewritten}, ""},
		"replaced":            {other, []checkpoint.Seen{seen(t, whole, 8)}, []checkpoint.FaultKind{checkpoint.Replaced}, "all events were replaced"},
		"another registry":    {whole, []checkpoint.Seen{elsewhere}, []checkpoint.FaultKind{checkpoint.Replaced}, `it is of registry "elsewhere", and this is "local"`},
		"nothing to compare":  {whole, nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kinds, text := check(t, c.events, c.seen...)
			if !slices.Equal(kinds, c.kinds) || !strings.Contains(text, c.says) {
				t.Errorf("got %v: %s; want %v with %q", kinds, text, c.kinds, c.says)
			}
		})
	}
}

// A newer checkpoint says how many events a restored history lacks; an older one says nothing, and
// one of another history is refused.
func TestLost(t *testing.T) {
	t.Parallel()
	full := historyOf(t, "event", 9)
	for name, c := range map[string]struct {
		have, size int
		lost       int64
		code       registry.Code
	}{
		"newer":       {5, 9, 4, ""},
		"of its end":  {5, 5, 0, ""},
		"older":       {5, 4, 0, registry.CodeInvalid},
		"of an empty": {0, 9, 9, ""},
	} {
		tree := treeOf(t, full[:c.have])
		held := seen(t, full, c.size)
		lost, err := tree.Lost("local", held)
		if lost != c.lost || (c.code == "") != (err == nil) || err != nil && registry.CodeOf(err) != c.code {
			t.Errorf("%s: %d events are lost, %v; want %d and %q", name, lost, err, c.lost, c.code)
		}
		if _, err := tree.Lost("another", held); registry.CodeOf(err) != registry.CodeTrust {
			t.Errorf("%s, of another registry: %v, want %s", name, err, registry.CodeTrust)
		}
	}
}
