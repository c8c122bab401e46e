package s3

import (
	"context"
	"errors"
	"fmt"
	"io"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Append collects bytes into parts and stores the rest as the tail.
func (u *Uploads) Append(
	ctx context.Context,
	owner storage.UploadOwner,
	id string,
	offset int64,
	r io.Reader,
) (int64, error) {
	state, err := u.states.Upload(ctx, owner, id)
	if err != nil {
		return 0, err
	}
	if state.Offset != offset {
		return state.Offset, registry.Errorf(registry.CodeConflict,
			"upload %s: it has %d bytes, so a chunk cannot begin at %d; continue at the end", id, state.Offset, offset)
	}
	s, err := u.open(state)
	if err != nil {
		return offset, err
	}
	defer s.close()
	if err := s.loadTail(ctx); err != nil {
		return offset, s.explain(ctx, "append to", err)
	}
	unread, err := s.receive(ctx, r)
	if err == nil {
		err = s.saveTail(ctx)
	}
	err = s.explain(ctx, "append to", err)
	if unread != nil {
		err = fmt.Errorf("read what to append to upload %s: %w", id, errors.Join(err, unread)) // keeps its own code
	}
	return s.state.Offset, err
}
