package s3

import (
	"context"
	"hash"
	"io"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

const (
	// inlineBytes is how long a tail may be to be kept in the record. Most configs are
	// shorter, and so cost the store one request.
	inlineBytes = 32 << 10

	// takenParts is how many numbers of parts a writer takes at a time. When he has used
	// them he says how far he is, so that no more than those are lost when he is killed.
	takenParts = 4
)

// session is an upload that one caller of this process works on.
type session struct {
	u     *Uploads
	state registry.UploadState // as it is recorded
	notes notes                // as they are recorded

	parts  []part
	next   int       // number of the next part
	last   int       // the last number that this session took
	buffer *[]byte   // bytes behind the parts
	offset int64     // bytes in parts and buffer
	sum    hash.Hash // of those bytes
}

// open makes a session of a state. Who got one closes it. Errors: CodeConflict when this
// process is at work on the upload already.
func (u *Uploads) open(state registry.UploadState) (*session, error) {
	n, err := readNotes(state)
	if err != nil {
		return nil, err
	}
	sum, err := state.Sum()
	if err != nil {
		return nil, err
	}
	if _, held := u.held.LoadOrStore(state.ID, true); held {
		return nil, registry.Errorf(registry.CodeConflict, "upload %s: somebody else is writing it; send one chunk after the other", state.ID)
	}
	return &session{
		u: u, state: state, notes: n, parts: slices.Clone(n.Parts),
		next: n.Used + 1, last: n.Used, buffer: u.b.borrow(), offset: state.Offset, sum: sum,
	}, nil
}

func (s *session) close() {
	s.u.b.giveBack(s.buffer)
	s.u.held.Delete(s.state.ID)
}

// newKey returns a new unique key for an object of this upload.
func (s *session) newKey() string { return s.u.b.newUploadKey(s.state.ID) }

func (s *session) multipart() *multipart {
	return &multipart{b: s.u.b, key: s.notes.Key, id: s.notes.ID, parts: s.parts}
}

// loadTail brings the recorded tail back into the buffer.
func (s *session) loadTail(ctx context.Context) error {
	if s.notes.TailKey == "" {
		*s.buffer = append((*s.buffer)[:0], s.notes.Tail...)
		return nil
	}
	var tail registry.Blob = &object{ctx: ctx, b: s.u.b, key: s.notes.TailKey, size: s.notes.TailSize}
	defer tail.Close()
	var err error
	*s.buffer, err = fill(ctx, (*s.buffer)[:0], int(s.notes.TailSize), tail, io.Discard)
	return err
}

// explain gives an error the words of the port. Where something is gone that the state
// named, somebody else may have gone on with the upload.
func (s *session) explain(ctx context.Context, operation string, err error) error {
	err = s.u.b.interpretError(operation, "upload "+s.state.ID, err)
	if !registry.HasCode(err, registry.CodeNotFound) {
		return err
	}
	now, failed := s.u.states.Upload(ctx, s.state.Owner, s.state.ID)
	if failed != nil {
		return failed
	}
	if now.Version != s.state.Version {
		return registry.Errorf(registry.CodeConflict, "upload %s: somebody else went on with it; ask how far it has come", s.state.ID)
	}
	return err
}

// receive takes r to its end. It gives the error of r apart from its own: what came
// before it counts.
func (s *session) receive(ctx context.Context, r io.Reader) (unread, err error) {
	for {
		have := len(*s.buffer)
		*s.buffer, unread = fill(ctx, *s.buffer, s.u.b.partBytes, r, s.sum)
		s.offset += int64(len(*s.buffer) - have)
		if unread != nil || len(*s.buffer) < s.u.b.partBytes {
			return unread, nil
		}
		if err := s.sendPart(ctx); err != nil {
			return nil, err
		}
		if s.next > s.last {
			if err := s.saveParts(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// sendPart makes the buffer the next part.
func (s *session) sendPart(ctx context.Context) error {
	if s.next > s.last {
		if err := s.take(ctx); err != nil {
			return err
		}
	}
	m := s.multipart()
	if err := m.put(ctx, s.next, *s.buffer); err != nil {
		return err
	}
	s.parts = m.parts
	s.next++
	*s.buffer = (*s.buffer)[:0]
	return nil
}

// take makes numbers of parts this session's own, of a multipart upload that it begins
// if there is none. That says nothing about how far the upload has come.
func (s *session) take(ctx context.Context) error {
	n := s.notes
	if n.Used+takenParts > maxParts {
		return registry.Errorf(registry.CodeInvalid, "upload %s: %s takes at most %d bytes in pieces", s.state.ID, s.u.b, int64(maxParts)*int64(s.u.b.partBytes))
	}
	if n.ID == "" {
		m, err := s.u.b.newMultipart(ctx, s.newKey())
		if err != nil {
			return err
		}
		n.Key, n.ID = m.key, m.id
	}
	n.Used += takenParts
	if err := s.record(ctx, s.state, n); err != nil {
		if s.notes.ID == "" {
			(&multipart{b: s.u.b, key: n.Key, id: n.ID}).abort(ctx)
		}
		return err
	}
	s.next, s.last = n.Used-takenParts+1, n.Used
	return nil
}

// saveParts records that the upload has come as far as its parts, as the buffer is
// empty, and takes more numbers. (Where there are none, take says so.)
func (s *session) saveParts(ctx context.Context) error {
	state, err := s.state.Advanced(s.offset, s.sum)
	if err != nil {
		return err
	}
	old := s.notes.TailKey
	n := notes{Key: s.notes.Key, ID: s.notes.ID, Parts: s.parts, Used: min(s.last+takenParts, maxParts)}
	if err := s.record(ctx, state, n); err != nil {
		return err
	}
	s.last = n.Used
	s.tidy(ctx, old)
	return nil
}

// saveTail records that the upload has come as far as the buffer, which it keeps. It does
// so also for a caller who has gone.
func (s *session) saveTail(ctx context.Context) error {
	if s.offset == s.state.Offset {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
	defer cancel()
	state, err := s.state.Advanced(s.offset, s.sum)
	if err != nil {
		return err
	}
	old := s.notes.TailKey
	n := notes{Key: s.notes.Key, ID: s.notes.ID, Parts: s.parts, Used: s.next - 1, TailSize: int64(len(*s.buffer))}
	if n.TailSize <= inlineBytes {
		n.Tail = *s.buffer
	} else {
		n.TailKey = s.newKey()
		if err := s.u.b.write(ctx, n.TailKey, *s.buffer); err != nil {
			return err
		}
	}
	if err := s.record(ctx, state, n); err != nil {
		s.tidy(ctx, n.TailKey)
		return err
	}
	s.tidy(ctx, old)
	return nil
}

// record swaps the state of the upload.
func (s *session) record(ctx context.Context, state registry.UploadState, n notes) error {
	place, err := n.encode()
	if err != nil {
		return err
	}
	state.Place = place
	if err := s.u.states.SwapUpload(ctx, state); err != nil {
		return err
	}
	state.Version++
	s.state, s.notes = state, n
	return nil
}

// tidy removes objects of the upload that are no longer referenced. Sweep removes what tidy
// misses.
func (s *session) tidy(ctx context.Context, keys ...string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
	defer cancel()
	for _, key := range keys {
		if key != "" {
			_ = s.u.b.remove(ctx, key)
		}
	}
}
