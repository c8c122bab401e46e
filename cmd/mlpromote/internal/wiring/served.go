package wiring

import (
	"context"

	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Served sets what a service has beside other processes: the marks of a replica, if there can be
// several, and the room that uploads leave on the disk of the content. tell is called when the
// replica may no longer write, and with nil when it may.
func (l Location) Served(here *Local, replica string, reserve int, tell func(ctx context.Context, err error)) {
	if l.Database != "" && here.Blobs.Verdict.Access == datadir.Owned {
		here.Replica = &datadir.Replica{
			Name: replica, Marks: here.DB.ReplicaMarks(), Place: here.Blobs.replicas, Clock: here.DB, Tell: tell,
		}
	}
	if l.Storage == "" {
		here.Reserve = &blob.Reserve{Path: l.Data, Bytes: int64(reserve)}
	}
}

// seenOwner is an owner of content whose replica may write.
type seenOwner struct {
	storage.ContentOwner
	replica *datadir.Replica
}

func (s seenOwner) OwnsContent(ctx context.Context) (int64, error) {
	if err := s.replica.Check(); err != nil {
		return 0, err
	}
	return s.ContentOwner.OwnsContent(ctx)
}
