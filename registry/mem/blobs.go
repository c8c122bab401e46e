package mem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"sync"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Blobs is [storage.Blobs] in a map. Make one with [NewBlobs].
type Blobs struct {
	mu      sync.RWMutex
	bytes   map[registry.Digest][]byte
	permits sync.RWMutex // a permit holds it for reading
}

var (
	_ storage.RepairableBlobs = (*Blobs)(nil)
	_ storage.Remover         = (*Blobs)(nil)
)

// NewBlobs is an empty store.
func NewBlobs() *Blobs { return &Blobs{bytes: make(map[registry.Digest][]byte)} }

// Put stores r under d. If d is stored already and not damaged, it does not read r.
func (b *Blobs) Put(ctx context.Context, d registry.Digest, size int64, r io.Reader) error {
	if err := errors.Join(ctx.Err(), validate(d)); err != nil {
		return err
	}
	b.mu.RLock()
	have, ok := b.bytes[d]
	b.mu.RUnlock()
	if ok && int64(len(have)) == size && d.Algorithm().FromBytes(have) == d {
		return nil
	}
	return b.Replace(ctx, d, size, r)
}

// Replace stores r under d.
func (b *Blobs) Replace(ctx context.Context, d registry.Digest, size int64, r io.Reader) error {
	if err := errors.Join(ctx.Err(), validate(d)); err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(r, size))
	if err != nil {
		return fmt.Errorf("read what to store as blob %s: %w", d, err)
	}
	extra, err := io.CopyN(io.Discard, r, 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read what to store as blob %s: %w", d, err)
	}
	if int64(len(content)) != size || extra > 0 || d.Algorithm().FromBytes(content) != d {
		return registry.Errorf(registry.CodeDigest, "blob %s: what came are not its %d bytes: nothing was stored; send the whole content again", d, size)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes[d] = content
	return nil
}

// Damage changes the stored bytes of d, as a disk may do.
func (b *Blobs) Damage(d registry.Digest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := bytes.Clone(b.bytes[d])
	if len(changed) > 0 {
		changed[0] ^= 1
	}
	b.bytes[d] = changed
}

// Open returns the bytes of d.
func (b *Blobs) Open(ctx context.Context, d registry.Digest) (storage.Blob, int64, error) {
	if err := errors.Join(ctx.Err(), validate(d)); err != nil {
		return nil, 0, err
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	content, ok := b.bytes[d]
	if !ok {
		return nil, 0, registry.Errorf(registry.CodeNotFound, "blob %s: not found", d)
	}
	return blob{bytes.NewReader(content)}, int64(len(content)), nil
}

// Delete forgets d. Who has it open reads on.
func (b *Blobs) Delete(ctx context.Context, d registry.Digest) error {
	if err := errors.Join(ctx.Err(), validate(d)); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.bytes, d)
	return nil
}

// Permit returns a permit that lasts until it is closed.
func (b *Blobs) Permit(ctx context.Context) (storage.Permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.permits.RLock()
	return permit{b}, nil
}

// Await returns when all permits are closed.
func (b *Blobs) Await(ctx context.Context) error {
	b.permits.Lock()
	defer b.permits.Unlock()
	return ctx.Err()
}

// Repeatable is false: a deletion is carried out once.
func (b *Blobs) Repeatable() bool { return false }

// permit lets Await wait.
type permit struct{ *Blobs }

func (p permit) Close() error {
	p.permits.RUnlock()
	return nil
}

// Digests lists the blobs held when the sequence was started.
func (b *Blobs) Digests(ctx context.Context) iter.Seq2[registry.Digest, error] {
	return func(yield func(registry.Digest, error) bool) {
		b.mu.RLock()
		held := slices.Collect(maps.Keys(b.bytes))
		b.mu.RUnlock()
		yieldAll(ctx, held, yield)
	}
}

// validate refuses what is no digest.
func validate(d registry.Digest) error {
	_, err := registry.NewHash(d)
	return err
}

// yieldAll yields values until the context ends.
func yieldAll[T any](ctx context.Context, values []T, yield func(T, error) bool) {
	for _, v := range values {
		if err := ctx.Err(); err != nil {
			var zero T
			yield(zero, err)
			return
		}
		if !yield(v, nil) {
			return
		}
	}
}

// blob is open content. Closing it does nothing.
type blob struct{ *bytes.Reader }

func (blob) Close() error { return nil }
