package history_test

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
)

// newestFirst numbers events in the order of the list, and returns them newest first.
func newestFirst(events []history.Event) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		for i := len(events) - 1; i >= 0; i-- {
			events[i].Seq = int64(i + 1)
			if !yield(events[i], nil) {
				return
			}
		}
	}
}

func TestCheckHead(t *testing.T) {
	t.Parallel()
	e := func(kind history.EventKind, release registry.Digest, reason string) history.Event {
		return history.Event{Kind: kind, Release: release, Version: string(release), Reason: reason}
	}
	const one, two = registry.Digest("one"), registry.Digest("two")
	promoted := e(history.EventPromote, one, "")
	for name, c := range map[string]struct {
		events []history.Event
		head   history.Head
		says   string // empty: no fault
	}{
		"nothing":                        {nil, history.Head{}, ""},
		"promoted":                       {[]history.Event{e(history.EventPublish, two, ""), promoted}, history.Head{Release: one}, ""},
		"evidence since":                 {[]history.Event{promoted, e(history.EventAttach, two, "")}, history.Head{Release: one}, ""},
		"rolled back":                    {[]history.Event{promoted, e(history.EventRollback, two, "slow")}, history.Head{Release: two, Hold: "slow"}, ""},
		"held":                           {[]history.Event{promoted, e(history.EventHoldSet, one, "fair")}, history.Head{Release: one, Hold: "fair"}, ""},
		"held and released":              {[]history.Event{promoted, e(history.EventHoldSet, one, "fair"), e(history.EventHoldRelease, one, "over")}, history.Head{Release: one}, ""},
		"hold ended by a move":           {[]history.Event{e(history.EventRollback, two, "slow"), e(history.EventHoldRelease, two, "over"), promoted}, history.Head{Release: one}, ""},
		"a reason that is not UTF-8":     {[]history.Event{promoted, e(history.EventHoldSet, one, "\ufffd\ufffd")}, history.Head{Release: one, Hold: "\xff\xfe"}, ""},
		"accepted":                       {[]history.Event{promoted, e(history.EventAccept, two, "restored")}, history.Head{Release: two, Hold: "whatever"}, ""},
		"accepted that there is none":    {[]history.Event{promoted, e(history.EventAccept, "", "lost")}, history.Head{}, ""},
		"no event":                       {nil, history.Head{Release: one, Version: "1.0.0"}, "the head is 1.0.0 (one), but no event"},
		"only evidence":                  {[]history.Event{e(history.EventAttach, one, "")}, history.Head{Release: one}, "no event"},
		"an older event":                 {[]history.Event{promoted}, history.Head{Release: two}, "event 1, put it at one"},
		"no head":                        {[]history.Event{promoted}, history.Head{}, "there is no head"},
		"a hold that no event set":       {[]history.Event{promoted}, history.Head{Release: one, Hold: "fair"}, `is "fair", but the history says ""`},
		"a hold that no event lifted":    {[]history.Event{e(history.EventRollback, two, "slow")}, history.Head{Release: two}, `is "", but the history says "slow"`},
		"moved on after it was accepted": {[]history.Event{e(history.EventAccept, two, "restored"), promoted}, history.Head{Release: two}, "event 2, put it at one"},
	} {
		s := history.ModelState{Environment: "prod", Model: "m", Head: c.head, Seq: int64(len(c.events))}
		fault, err := s.CheckHead(newestFirst(c.events))
		switch {
		case err != nil:
			t.Errorf("%s: error %v", name, err)
		case c.says == "" && fault != nil:
			t.Errorf("%s: fault %q, want none", name, fault.Detail)
		case c.says != "" && (fault == nil || !strings.Contains(fault.Detail, c.says)):
			t.Errorf("%s: fault %+v, want %q in it", name, fault, c.says)
		case fault == nil:
			continue
		}
		err = fault.Err()
		if registry.ExitCode(err) != 5 || !strings.Contains(err.Error(), "m in prod") || len(registry.Hints(err)) == 0 {
			t.Errorf("%s: the error is %v, want CodeTrust with a hint", name, err)
		}
	}
}

// CheckHead ignores events that came after the head was read. It returns an error if the
// history cannot be read.
func TestCheckHeadReads(t *testing.T) {
	t.Parallel()
	events := []history.Event{{Kind: history.EventPromote, Release: "one"}, {Kind: history.EventPromote, Release: "two"}}
	s := history.ModelState{Head: history.Head{Release: "one"}, Seq: 1}
	if fault, err := s.CheckHead(newestFirst(events)); err != nil || fault != nil {
		t.Errorf("with a later event: fault %v, error %v, want none", fault, err)
	}
	failed := errors.New("failed")
	if _, err := s.CheckHead(func(yield func(history.Event, error) bool) { yield(history.Event{}, failed) }); !errors.Is(err, failed) {
		t.Errorf("error %v, want that of the history", err)
	}
}
