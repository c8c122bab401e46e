// Package snapshots backs up a data directory and restores it, with its catalog in a file or in PostgreSQL.
package snapshots

import (
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry/backup"
)

// Job is a data directory that is backed up or restored.
type Job struct {
	At wiring.Location
	UI *ui.UI // shows progress and notes
}

// Snapshot is a snapshot in a backup.
type Snapshot = backup.Snapshot
