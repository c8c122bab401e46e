package storage_test

import (
	"slices"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// A replica sees the marks of the others that run, and must find them in its content.
func TestReplicaMarkUnseen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	joined := storage.ReplicaMark{Asked: ago(time.Hour), Joined: ago(time.Hour), Seen: ago(time.Second)}
	asking := func(since time.Duration) storage.ReplicaMark {
		return storage.ReplicaMark{Asked: ago(since), Seen: ago(since)}
	}
	other := func(seen time.Duration) storage.ReplicaMark {
		return storage.ReplicaMark{Joined: ago(time.Hour), Seen: ago(seen)}
	}
	for name, c := range map[string]struct {
		own, other storage.ReplicaMark
		stored     time.Time
		seen       bool
	}{
		"renewed since asked":            {asking(2 * time.Second), other(time.Second), ago(time.Second), true},
		"renewed when asked":             {asking(2 * time.Second), other(2 * time.Second), ago(2 * time.Second), false},
		"renewed elsewhere":              {asking(2 * time.Second), other(time.Second), ago(3 * time.Second), false},
		"silent, for a moment":           {asking(storage.MarkPatience - 1), other(5 * time.Second), ago(5 * time.Second), false},
		"silent, for long":               {asking(storage.MarkPatience), other(5 * time.Second), ago(5 * time.Second), true},
		"silent, another mark":           {asking(storage.MarkPatience), other(5 * time.Second), ago(6 * time.Second), false},
		"silent, no mark":                {asking(storage.MarkPatience), other(5 * time.Second), time.Time{}, false},
		"expired":                        {asking(time.Second), other(storage.MarkLease), time.Time{}, true},
		"has not joined":                 {asking(time.Second), asking(2 * time.Second), time.Time{}, true},
		"joined, seen":                   {joined, other(time.Second), ago(time.Second), true},
		"joined, seen late":              {joined, other(0), ago(storage.MarkLease), true},
		"joined, not seen for too long":  {joined, other(0), ago(storage.MarkLease + 1), false},
		"joined, the other has no marks": {joined, other(time.Second), time.Time{}, false},
	} {
		all := []registry.Named[storage.ReplicaMark]{{Name: "other", Document: c.other}}
		var want []string
		if !c.seen {
			want = []string{"other"}
		}
		if got := c.own.Unseen(all, map[string]time.Time{"other": c.stored}, now); !slices.Equal(got, want) {
			t.Errorf("%s: unseen are %v, want %v", name, got, want)
		}
	}
}
