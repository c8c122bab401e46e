package storage

import (
	"cmp"
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Inventory lists the content of all repositories. Unlike [RepositoryRecords] it does not unmark content,
// because listing is not use. Implementations are safe for concurrent use.
type Inventory interface {
	// HeldDigests lists up to limit digests that some repository holds, after a digest ("" for the
	// first), in byte order. With a time it lists only digests that were added at or after that
	// time.
	HeldDigests(ctx context.Context, after registry.Digest, since time.Time, limit int) ([]registry.Digest, error)
	// Holders lists the repositories that hold a digest, in byte order.
	Holders(ctx context.Context, d registry.Digest) ([]string, error)
}

// DamageKind is what is wrong with stored content.
type DamageKind string

// The kinds of damage.
const (
	DamageChanged    DamageKind = "changed"    // its bytes do not match its digest
	DamageMissing    DamageKind = "missing"    // it does not exist
	DamageUnreadable DamageKind = "unreadable" // the storage fails to read it
)

// Damage is content that a repository holds but that cannot be served.
type Damage struct {
	Digest       registry.Digest   `json:"digest"`
	Kind         DamageKind        `json:"kind"`
	Detail       string            `json:"detail"`
	Found        time.Time         `json:"found"`        // by the clock of the catalog
	Repositories []string          `json:"repositories"` // that hold it
	Releases     []AffectedRelease `json:"releases,omitempty"`
}

// AffectedRelease is a release that needs damaged content.
type AffectedRelease struct {
	Environment string          `json:"environment"`
	Model       string          `json:"model"`
	Release     registry.Digest `json:"release"`
	Tags        []string        `json:"tags,omitempty"`
	Head        bool            `json:"head"` // of the environment, now
}

// CompareFound orders damage by when it was found.
func (d Damage) CompareFound(other Damage) int {
	return cmp.Or(d.Found.Compare(other.Found), cmp.Compare(d.Digest, other.Digest))
}

// Damages is the known damage, by digest.
type Damages = registry.Table[Damage]

// ScrubState is the progress of a scrubber.
type ScrubState struct {
	Position registry.Digest `json:"position,omitempty"` // the last digest read in this pass
	Started  time.Time       `json:"started,omitzero"`   // of this pass; zero: no pass in progress
	Read     int64           `json:"read,omitempty"`     // bytes in this pass
	Checked  int64           `json:"checked,omitempty"`  // digests in this pass
	Finished time.Time       `json:"finished,omitzero"`  // of the last complete pass
}

// ScrubStates keeps the state of the scrubber, under one name.
type ScrubStates = registry.Table[ScrubState]
