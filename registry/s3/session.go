package s3

import (
	"context"
	"hash"
	"io"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	// inlineBytes is the maximum size of a tail in the record. Most configs are smaller and so
	// need one request to the store.
	inlineBytes = 32 << 10

	// takenParts is how many part numbers a writer reserves at a time. After it has used them it
	// saves its progress, so that a killed writer loses at most these parts.
	takenParts = 4
)

// session is an upload that a caller of this process is writing.
type session struct {
	u     *Uploads
	state storage.UploadState // as recorded
	notes notes               // as recorded

	parts  []part
	next   int       // number of the next part
	last   int       // the last number that this session reserved
	buffer *[]byte   // bytes after the parts
	offset int64     // bytes in parts and buffer
	sum    hash.Hash // of those bytes
}

// open returns a session for a state. The caller closes it. Errors: CodeConflict if another
// caller of this process is writing the upload.
func (u *Uploads) open(state storage.UploadState) (*session, error) {
	n, err := readNotes(state)
	if err != nil {
		return nil, err
	}
	sum, err := state.Sum()
	if err != nil {
		return nil, err
	}
	if _, held := u.held.LoadOrStore(state.ID, true); held {
		return nil, registry.Errorf(registry.CodeConflict,
			"upload %s: another request is writing it; send one chunk at a time", state.ID)
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

// loadTail loads the recorded tail into the buffer.
func (s *session) loadTail(ctx context.Context) error {
	if s.notes.TailKey == "" {
		*s.buffer = append((*s.buffer)[:0], s.notes.Tail...)
		return nil
	}
	var tail storage.Blob = &object{ctx: ctx, b: s.u.b, key: s.notes.TailKey, size: s.notes.TailSize}
	defer tail.Close()
	var err error
	*s.buffer, err = fill(ctx, (*s.buffer)[:0], int(s.notes.TailSize), tail, io.Discard)
	return err
}

// explain converts an error to one of the port. If an object of the state is missing, another
// request may have continued the upload.
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
		return registry.Errorf(registry.CodeConflict,
			"upload %s: another request continued it; query its offset and continue there", s.state.ID)
	}
	return err
}

// receive reads r to its end. It returns the error of r separately, because bytes before that
// error count.
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

// sendPart sends the buffer as the next part.
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

// take reserves part numbers for this session. If there is no multipart upload, it begins one.
// It does not change the progress of the upload.
func (s *session) take(ctx context.Context) error {
	n := s.notes
	if n.Used+takenParts > maxParts {
		return registry.Errorf(registry.CodeInvalid,
			"upload %s: %s takes at most %d bytes in pieces", s.state.ID, s.u.b, int64(maxParts)*int64(s.u.b.partBytes))
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

// saveParts records that the upload has all bytes of its parts, because the buffer is empty. It
// also reserves more numbers; take fails if none are left.
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

// saveTail records that the upload has all bytes up to the end of the buffer, and stores the
// buffer. It does so even if the caller has disconnected.
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
func (s *session) record(ctx context.Context, state storage.UploadState, n notes) error {
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
