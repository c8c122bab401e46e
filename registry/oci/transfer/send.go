package transfer

import (
	"context"
	"errors"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
)

// send stores a blob with the upload s or, if s is nil, with a new one.
func (r *Repository) send(ctx context.Context, desc ocispec.Descriptor, s *session, open func() (io.ReadCloser, error)) error {
	for begun := 1; ; begun++ {
		if s == nil {
			var err error
			if s, err = r.begin(ctx, "", ""); err != nil {
				return err
			}
		}
		err := s.fill(ctx, desc, open)
		var restart lost
		if !errors.As(err, &restart) {
			return err
		}
		if begun >= r.options.Tries {
			return registry.Errorf(registry.CodeUnavailable,
				"registry %s: the upload of %s (%d bytes) was begun %d times and lost each time: %w", r.host(), desc.Digest, desc.Size, begun, restart.error)
		}
		if err := r.pause(ctx, begun); err != nil {
			return err
		}
		s = nil
	}
}

// fill sends the content of a blob and completes the upload.
func (s *session) fill(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) error {
	content, err := open()
	if err != nil {
		return err
	}
	defer content.Close()
	chunk := max(s.repo.options.Chunk, s.least)
	if desc.Size <= chunk {
		data := make([]byte, desc.Size)
		if err := readAll(content, data, true); err != nil {
			return err
		}
		return s.put(ctx, desc, data, nil)
	}
	if s.repo.whole.Load() {
		return s.put(ctx, desc, nil, content)
	}
	return s.fillChunks(ctx, desc, content, chunk)
}

func (s *session) fillChunks(ctx context.Context, desc ocispec.Descriptor, content io.Reader, chunk int64) error {
	var buffer []byte
	for s.have < desc.Size {
		if buffer == nil {
			buffer = make([]byte, chunk)
		}
		piece := buffer[:min(chunk, desc.Size-s.have)]
		if err := readAll(content, piece, s.have+int64(len(piece)) == desc.Size); err != nil {
			return err
		}
		clean, err := s.deliver(ctx, desc, piece)
		if err != nil {
			return err
		}
		if !clean {
			buffer = nil // a failed request may still be reading it
		}
	}
	return s.finish(ctx, desc)
}

// readAll fills p. The last piece must end exactly where the content ends, so that a reader
// that hashes checks the digest.
func readAll(content io.Reader, p []byte, last bool) error {
	n, err := io.ReadFull(content, p)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return registry.Errorf(registry.CodeDigest, "the sent data ended %d bytes too early", len(p)-n)
	}
	if err != nil || !last {
		return err
	}
	var more [1]byte
	switch _, err := io.ReadFull(content, more[:]); {
	case err == nil:
		return registry.Errorf(registry.CodeDigest, "the sent data continues after its end")
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// deliver sends a chunk. After a failure it asks the registry how much it has, and sends the
// rest. clean reports that there was no failure.
func (s *session) deliver(ctx context.Context, desc ocispec.Descriptor, piece []byte) (clean bool, err error) {
	start, end := s.have, s.have+int64(len(piece))
	clean = true
	for failures, sure, most := 0, true, start; s.have < end; {
		if sure {
			err = s.patch(ctx, piece[s.have-start:])
		} else {
			err = s.ask(ctx, start, failures)
		}
		switch {
		case s.have < start || s.have > end:
			return false, lost{registry.Errorf(registry.CodeUnavailable,
				"the registry has %d bytes of the upload, where it was sent between %d and %d", s.have, start, end)}
		case s.have > most:
			failures, most = 0, s.have
		}
		if err == nil {
			sure = true
			continue
		}
		if stop := s.stop(err, clean); stop != nil {
			return false, stop
		}
		clean, sure = false, false
		if failures++; failures >= s.repo.options.Tries {
			return false, registry.Errorf(registry.CodeUnavailable,
				"registry %s: %d of %d bytes of %s were sent, and then it failed %d times in a row: %w",
				s.repo.host(), s.have, desc.Size, desc.Digest, failures, err)
		}
		if err := s.repo.pause(ctx, failures); err != nil {
			return false, err
		}
	}
	return clean, nil
}

// stop returns the error that ends the sending of a chunk, or nil if a retry may succeed.
func (s *session) stop(err error, first bool) error {
	switch classify(err) {
	case again:
		return nil
	case fatal:
		return err
	case unable:
		if first && s.have == 0 {
			s.repo.whole.Store(true)
		}
	}
	return lost{err}
}

// Send stores a blob. open returns its bytes from the beginning. It is called once, and again
// each time the registry loses the upload. Errors: as Push.
func (r *Repository) Send(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) error {
	return r.send(ctx, desc, nil, open)
}

// Mount makes a blob of another repository of this registry available in this one, or sends it
// if the registry cannot mount.
func (r *Repository) Mount(ctx context.Context, desc ocispec.Descriptor, from string, open func() (io.ReadCloser, error)) error {
	s, err := r.begin(ctx, desc.Digest, from)
	switch {
	case err != nil && (classify(err) == unable || classify(err) == gone):
		return r.Send(ctx, desc, open) // some registries return an error where they should start an upload
	case err != nil || s == nil:
		return err
	}
	return r.send(ctx, desc, s, open)
}

// Push stores content. If the content is not an io.Seeker and the registry loses the upload,
// Push fails, because it cannot read the content again. Errors: CodeUnavailable if the network
// or the registry fails too often; those of the content; *errcode.ErrorResponse otherwise.
func (r *Repository) Push(ctx context.Context, desc ocispec.Descriptor, content io.Reader) error {
	if isManifest(desc.MediaType) {
		return r.Repository.Push(ctx, desc, content)
	}
	return r.Send(ctx, desc, rewinding(content))
}

// rewinding returns a function that rewinds open content.
func rewinding(content io.Reader) func() (io.ReadCloser, error) {
	used := false
	return func() (io.ReadCloser, error) {
		if used {
			seeker, ok := content.(io.Seeker)
			if !ok {
				return nil, registry.Errorf(registry.CodeUnavailable, "the registry lost the upload, and the content to send cannot be read again")
			}
			if _, err := seeker.Seek(0, io.SeekStart); err != nil {
				return nil, registry.Errorf(registry.CodeInternal, "read the data to send again: %w", err)
			}
		}
		used = true
		return io.NopCloser(content), nil
	}
}
