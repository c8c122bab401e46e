package storage

import (
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
)

// Replica is a process that serves a catalog. It says this of itself about once a minute.
type Replica struct {
	Name          string                     `json:"name"`
	Host          string                     `json:"host"` // name of its machine
	Version       string                     `json:"version"`
	Started       time.Time                  `json:"started"`
	Seen          time.Time                  `json:"seen"` // by the clock of the catalog
	Configuration history.ConfigurationState `json:"configuration"`
	// CollectEvery and ScrubEvery are the intervals of its settings; 0: it does not.
	CollectEvery time.Duration  `json:"collectEveryNs"`
	ScrubEvery   time.Duration  `json:"scrubEveryNs"`
	Collection   *CollectionRun `json:"collection,omitempty"` // its last one
	Stopped      bool           `json:"stopped,omitempty"`    // it ended, as it was asked to
}

// Replicas are the replicas of a catalog, by name.
type Replicas = registry.Table[Replica]

// SilentAfter is how long after it was last seen a replica that did not stop counts as lost.
const SilentAfter = 3 * time.Minute

// Lost reports whether the replica ended without saying so.
func (r Replica) Lost(now time.Time) bool { return !r.Stopped && now.Sub(r.Seen) > SilentAfter }
