package registry_test

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// newestFirst numbers events in the order of the list, and returns them newest first.
func newestFirst(events []registry.Event) iter.Seq2[registry.Event, error] {
	return func(yield func(registry.Event, error) bool) {
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
	e := func(kind registry.EventKind, release registry.Digest, reason string) registry.Event {
		return registry.Event{Kind: kind, Release: release, Version: string(release), Reason: reason}
	}
	const one, two = registry.Digest("one"), registry.Digest("two")
	promoted := e(registry.EventPromote, one, "")
	for name, c := range map[string]struct {
		events []registry.Event
		head   registry.Head
		says   string // empty: no fault
	}{
		"nothing":                        {nil, registry.Head{}, ""},
		"promoted":                       {[]registry.Event{e(registry.EventPublish, two, ""), promoted}, registry.Head{Release: one}, ""},
		"evidence since":                 {[]registry.Event{promoted, e(registry.EventAttach, two, "")}, registry.Head{Release: one}, ""},
		"rolled back":                    {[]registry.Event{promoted, e(registry.EventRollback, two, "slow")}, registry.Head{Release: two, Hold: "slow"}, ""},
		"held":                           {[]registry.Event{promoted, e(registry.EventHoldSet, one, "fair")}, registry.Head{Release: one, Hold: "fair"}, ""},
		"held and released":              {[]registry.Event{promoted, e(registry.EventHoldSet, one, "fair"), e(registry.EventHoldRelease, one, "over")}, registry.Head{Release: one}, ""},
		"hold ended by a move":           {[]registry.Event{e(registry.EventRollback, two, "slow"), e(registry.EventHoldRelease, two, "over"), promoted}, registry.Head{Release: one}, ""},
		"a reason that is not UTF-8":     {[]registry.Event{promoted, e(registry.EventHoldSet, one, "\ufffd\ufffd")}, registry.Head{Release: one, Hold: "\xff\xfe"}, ""},
		"accepted":                       {[]registry.Event{promoted, e(registry.EventAccept, two, "restored")}, registry.Head{Release: two, Hold: "whatever"}, ""},
		"accepted that there is none":    {[]registry.Event{promoted, e(registry.EventAccept, "", "lost")}, registry.Head{}, ""},
		"no event":                       {nil, registry.Head{Release: one, Version: "1.0.0"}, "the head is 1.0.0 (one), but no event"},
		"only evidence":                  {[]registry.Event{e(registry.EventAttach, one, "")}, registry.Head{Release: one}, "no event"},
		"an older event":                 {[]registry.Event{promoted}, registry.Head{Release: two}, "event 1, put it at one"},
		"no head":                        {[]registry.Event{promoted}, registry.Head{}, "there is no head"},
		"a hold that no event set":       {[]registry.Event{promoted}, registry.Head{Release: one, Hold: "fair"}, `is "fair", but the history says ""`},
		"a hold that no event lifted":    {[]registry.Event{e(registry.EventRollback, two, "slow")}, registry.Head{Release: two}, `is "", but the history says "slow"`},
		"moved on after it was accepted": {[]registry.Event{e(registry.EventAccept, two, "restored"), promoted}, registry.Head{Release: two}, "event 2, put it at one"},
	} {
		s := registry.ModelState{Environment: "prod", Model: "m", Head: c.head, Seq: int64(len(c.events))}
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
	events := []registry.Event{{Kind: registry.EventPromote, Release: "one"}, {Kind: registry.EventPromote, Release: "two"}}
	s := registry.ModelState{Head: registry.Head{Release: "one"}, Seq: 1}
	if fault, err := s.CheckHead(newestFirst(events)); err != nil || fault != nil {
		t.Errorf("with a later event: fault %v, error %v, want none", fault, err)
	}
	failed := errors.New("failed")
	if _, err := s.CheckHead(func(yield func(registry.Event, error) bool) { yield(registry.Event{}, failed) }); !errors.Is(err, failed) {
		t.Errorf("error %v, want that of the history", err)
	}
}
