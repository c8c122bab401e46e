package storage

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

const (
	// MarkInterval is how often a replica renews its marks.
	MarkInterval = 10 * time.Second
	// MarkLease is how long a replica counts as living after it renewed its marks.
	MarkLease = 3 * MarkInterval
	// MarkPatience is how long a new replica waits for others to renew their marks. A replica that
	// ended without a word does not renew them.
	MarkPatience = 3 * time.Second
)

// ReplicaMark is the mark that a replica leaves in the catalog while it runs. It leaves the time of
// Seen with the content too. A replica that works on a copy of a directory or bucket does not see
// the marks that others renew.
type ReplicaMark struct {
	// Asked is when the replica began to ask the others to renew their marks.
	Asked time.Time `json:"asked"`
	// Joined is since when the replica may write; zero: it may not.
	Joined time.Time `json:"joined,omitzero"`
	// Seen is when the marks were renewed. All times are by the clock of the catalog.
	Seen time.Time `json:"seen"`
}

// ReplicaMarks are the marks of replicas by their names.
type ReplicaMarks = registry.Table[ReplicaMark]

// ReplicaPlace stores the marks of replicas with the content. Implementations are safe for
// concurrent use, also by several processes.
type ReplicaPlace interface {
	// SetReplicaMark stores when a replica renewed its mark, and replaces an earlier time.
	SetReplicaMark(ctx context.Context, name string, seen time.Time) error
	// ReplicaMark returns that time, or the zero time if there is no mark.
	ReplicaMark(ctx context.Context, name string) (time.Time, error)
	// DeleteReplicaMark deletes a mark. It succeeds if there is none.
	DeleteReplicaMark(ctx context.Context, name string) error
}

// Living reports whether a replica may write and has renewed its marks within [MarkLease].
func (m ReplicaMark) Living(now time.Time) bool {
	return !m.Joined.IsZero() && now.Sub(m.Seen) < MarkLease
}

// Unseen names the living replicas among others whose marks are not in the content that the
// replica m works on. inContent has the times that are stored there. Before m has joined, a mark
// must have been renewed since m asked, because a copy made a moment ago has all earlier ones.
func (m ReplicaMark) Unseen(others []registry.Named[ReplicaMark], inContent map[string]time.Time, now time.Time) []string {
	var unseen []string
	for _, other := range others {
		if other.Document.Living(now) && !m.sees(other.Document, inContent[other.Name], now) {
			unseen = append(unseen, other.Name)
		}
	}
	return unseen
}

// sees decides about one living replica whose mark in the content has a time.
func (m ReplicaMark) sees(other ReplicaMark, stored, now time.Time) bool {
	switch {
	case !m.Joined.IsZero(): // storage over a network may show a mark late
		return !stored.Before(other.Seen.Add(-MarkLease))
	case stored.After(m.Asked):
		return true
	}
	silent := other.Seen.Before(m.Asked) && now.Sub(m.Asked) >= MarkPatience
	return silent && !stored.Before(other.Seen)
}
