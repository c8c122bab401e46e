package storage

import (
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// ContentUse is what repositories hold, as it was counted at one time.
type ContentUse struct {
	At           time.Time `json:"at"`
	Storage      string    `json:"storage"` // "directory", or that of the bucket
	Repositories int       `json:"repositories"`
	Manifests    int       `json:"manifests"` // each digest once
	Blobs        int       `json:"blobs"`     // likewise
	Bytes        int64     `json:"bytes"`     // likewise
	Marked       int       `json:"marked"`    // records that garbage collection will delete unless they are used again
	// Largest are the repositories that hold most, the largest first.
	Largest []RepositoryUse `json:"largest"`
}

// RepositoryUse is what one repository holds. Others can hold the same bytes.
type RepositoryUse struct {
	Repository string `json:"repository"`
	Bytes      int64  `json:"bytes"`
}

// CollectionRun is a garbage collection that ended.
type CollectionRun struct {
	Ended     time.Time `json:"ended"`
	TookNs    int64     `json:"tookNs"`
	Marked    int       `json:"marked"`
	Unmarked  int       `json:"unmarked"`
	Manifests int       `json:"manifests"` // deleted
	Members   int       `json:"members"`   // blobs taken out of repositories
	Blobs     int       `json:"blobs"`     // deleted
	Bytes     int64     `json:"bytes"`     // of them
	// Skipped are repositories that it did not touch, with the reason.
	Skipped []string `json:"skipped,omitempty"`
	Failed  bool     `json:"failed,omitempty"` // the log of the replica says why
}

// PendingMove is an [history.Intent] as clients see it.
type PendingMove struct {
	Environment string          `json:"environment"`
	Model       string          `json:"model"`
	From        string          `json:"from,omitempty"` // equal to Environment for a rollback
	Release     registry.Digest `json:"release"`
	Begun       time.Time       `json:"begun"`
}
