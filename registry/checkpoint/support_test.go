package checkpoint_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/checkpoint"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
)

// historyOf is a history of n events that name says something about.
func historyOf(t testing.TB, name string, n int) []history.Event {
	t.Helper()
	return extend(t, nil, name, n)
}

// extend adds n events to a history.
func extend(t testing.TB, events []history.Event, name string, n int) []history.Event {
	t.Helper()
	events = slices.Clone(events)
	for range n {
		var before history.Event
		if len(events) > 0 {
			before = events[len(events)-1]
		}
		e := history.Event{
			Time: time.Unix(1_800_000_000+int64(len(events)), 0), Kind: history.EventAttach, Environment: "staging", Model: "vision/digits",
			Reason: fmt.Sprintf("%s %d", name, len(events)),
		}
		e, err := e.Chain(before)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// rechained is a history whose chain is made again after somebody changed it.
func rechained(t testing.TB, events []history.Event) []history.Event {
	t.Helper()
	var before history.Event
	for i := range events {
		e, err := events[i].Chain(before)
		if err != nil {
			t.Fatal(err)
		}
		events[i], before = e, e
	}
	return events
}

func treeOf(t testing.TB, events []history.Event) *checkpoint.Tree {
	t.Helper()
	tree := new(checkpoint.Tree)
	for _, e := range events {
		if err := tree.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

// seen is the checkpoint of the first size events of a history.
func seen(t testing.TB, events []history.Event, size int) checkpoint.Seen {
	t.Helper()
	c, err := treeOf(t, events[:size]).At("local", int64(size))
	if err != nil {
		t.Fatal(err)
	}
	return checkpoint.Seen{Checkpoint: c, Name: fmt.Sprintf("FILE of %d", size), Counts: true}
}

func newSigner(t testing.TB) signer.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := signer.New(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// trusting trusts keys by entries, whose paths are a.pub, b.pub and so on.
func trusting(t testing.TB, keys map[string]signer.Signer, entries ...trust.TrustEntry) *signer.Trust {
	t.Helper()
	trust, err := signer.NewTrust(entries, func(path string) ([]byte, error) {
		if s, ok := keys[path]; ok {
			return s.PublicKeyPEM(), nil
		}
		return nil, fs.ErrNotExist
	})
	if err != nil {
		t.Fatal(err)
	}
	return trust
}

// promoter is an entry that trusts a key to sign checkpoints of registry local.
func promoter(path string) trust.TrustEntry {
	return trust.TrustEntry{Key: path, Roles: []evidence.Role{evidence.RolePromoter}, Resources: []string{"oci://local/"}}
}

// signed is the note of a checkpoint.
func signed(t testing.TB, s signer.Signer, c checkpoint.Checkpoint) []byte {
	t.Helper()
	note, err := s.SignNote(t.Context(), c.Origin.String(), c.Text())
	if err != nil {
		t.Fatal(err)
	}
	return note
}

// catalog is a history in memory.
type catalog struct{ events []history.Event }

func (c *catalog) History(_ context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		n := 0
		for _, e := range c.events {
			if e.Seq <= q.After || q.Limit > 0 && n == q.Limit {
				continue
			}
			if n++; !yield(e, nil) {
				return
			}
		}
	}
}
