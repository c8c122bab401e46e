package composed

import (
	"context"
	"errors"
	"io"
	"sort"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Blob is content that is composed while it is read.
type Blob struct {
	recipe storage.Recipe
	begins []int64                       // where each piece begins
	parts  map[registry.Digest]*openPart // that are open
	at     int64                         // of the next Read
}

// openPart is a part, and where its own next Read is.
type openPart struct {
	storage.Blob
	at int64
}

// Open composes content of stored bytes. It opens every part, so that a missing one is found before the first Read.
// Errors: CodeNotFound for a part that is missing or has another size; errors of the storage.
func Open(ctx context.Context, stored storage.Blobs, recipe storage.Recipe) (*Blob, error) {
	b := &Blob{recipe: recipe, begins: make([]int64, len(recipe.Pieces)), parts: make(map[registry.Digest]*openPart)}
	var begin int64
	for i, p := range recipe.Pieces {
		b.begins[i] = begin
		begin += p.Length()
		if p.Digest == "" || b.parts[p.Digest] != nil {
			continue
		}
		part, size, err := stored.Open(ctx, p.Digest)
		if err == nil {
			b.parts[p.Digest] = &openPart{Blob: part}
			if size != p.Size {
				err = missing(recipe, p.Digest, errSize)
			}
		} else if registry.HasCode(err, registry.CodeNotFound) {
			err = missing(recipe, p.Digest, err)
		}
		if err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	return b, nil
}

// Parts lists the stored digests that the content is composed of.
func (b *Blob) Parts() []registry.Digest { return b.recipe.Parts() }

// Version changes with the bytes of any part.
func (b *Blob) Version() string {
	var all []string
	for _, d := range b.recipe.Parts() {
		version := storage.VersionOf(b.parts[d].Blob)
		if version == "" {
			return ""
		}
		all = append(all, version)
	}
	return strings.Join(all, ";")
}

// Read reads within one piece.
func (b *Blob) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	piece, from, ok := b.piece(b.at)
	if !ok {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), piece.Length()-from)]
	if piece.Digest == "" {
		n := copy(p, piece.Literal[from:])
		b.at += int64(n)
		return n, nil
	}
	part, err := b.seek(piece, from)
	if err != nil {
		return 0, err
	}
	n, err := part.Read(p)
	part.at += int64(n)
	b.at += int64(n)
	if errors.Is(err, io.EOF) {
		if err = nil; n < len(p) {
			err = b.tooShort(piece)
		}
	}
	return n, err
}

// seek moves a part to a position, unless it is there: object stores begin a new request for each move.
func (b *Blob) seek(piece storage.Piece, at int64) (*openPart, error) {
	part := b.parts[piece.Digest]
	if part.at == at {
		return part, nil
	}
	moved, err := part.Seek(at, io.SeekStart)
	part.at = moved
	return part, err
}

func (b *Blob) tooShort(piece storage.Piece) error {
	return registry.Errorf(registry.CodeDigest, "%s is damaged: %s, which it is composed of, has fewer than %d bytes",
		b.recipe.Digest, piece.Digest, piece.Size)
}

// piece returns the piece at a position, and where in it that is. ok is false at the end.
func (b *Blob) piece(at int64) (piece storage.Piece, from int64, ok bool) {
	if at >= b.recipe.Size {
		return storage.Piece{}, 0, false
	}
	i := sort.Search(len(b.begins), func(i int) bool { return b.begins[i] > at }) - 1
	return b.recipe.Pieces[i], at - b.begins[i], true
}

// ReadAt reads at a position, independently of Read.
func (b *Blob) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, registry.Errorf(registry.CodeInvalid, "read %s at %d: want a position in it", b.recipe.Digest, off)
	}
	for n < len(p) {
		piece, from, ok := b.piece(off + int64(n))
		if !ok {
			return n, io.EOF
		}
		into := p[n:]
		into = into[:min(int64(len(into)), piece.Length()-from)]
		if piece.Digest == "" {
			n += copy(into, piece.Literal[from:])
			continue
		}
		did, err := b.parts[piece.Digest].ReadAt(into, from)
		n += did
		switch {
		case did == len(into):
		case errors.Is(err, io.EOF):
			return n, b.tooShort(piece)
		default:
			return n, err
		}
	}
	return n, nil
}

// Seek moves the position of Read.
func (b *Blob) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += b.at
	case io.SeekEnd:
		offset += b.recipe.Size
	}
	if offset < 0 {
		return b.at, registry.Errorf(registry.CodeInvalid, "seek %s to %d: want a position in it", b.recipe.Digest, offset)
	}
	b.at = offset
	return offset, nil
}

// SendTo copies the next n bytes to w, piece by piece. Parts go as they are opened, so that the kernel can copy files to a
// socket.
func (b *Blob) SendTo(w io.Writer, n int64) (sent int64, err error) {
	for sent < n && err == nil {
		piece, from, ok := b.piece(b.at)
		if !ok {
			return sent, io.EOF
		}
		length := min(n-sent, piece.Length()-from)
		var did int64
		if piece.Digest == "" {
			var k int
			k, err = w.Write(piece.Literal[from : from+length])
			did = int64(k)
		} else {
			did, err = b.sendPart(w, piece, from, length)
		}
		sent += did
		b.at += did
	}
	return sent, err
}

func (b *Blob) sendPart(w io.Writer, piece storage.Piece, from, length int64) (int64, error) {
	part, err := b.seek(piece, from)
	if err != nil {
		return 0, err
	}
	did, err := io.Copy(w, io.LimitReader(part.Blob, length))
	part.at += did
	if err == nil && did < length {
		err = b.tooShort(piece)
	}
	return did, err
}

// Close closes the parts.
func (b *Blob) Close() error {
	var err error
	for _, part := range b.parts {
		err = errors.Join(err, part.Close())
	}
	return err
}

// partError is the error of a part that is missing or has another size.
type partError struct {
	error
	part registry.Digest
}

func (e partError) Unwrap() error { return e.error }

// Part names the part, for those who look for damage.
func (e partError) Part() registry.Digest { return e.part }

// missing returns the error of a part that is missing or has another size.
func missing(recipe storage.Recipe, part registry.Digest, reason error) error {
	return partError{registry.Errorf(registry.CodeNotFound, "blob %s is composed of %s: %w", recipe.Digest, part, reason), part}
}

// errSize is the reason if a part has another size than its recipe wants.
var errSize = errors.New("it has another size than it had: push it again")
