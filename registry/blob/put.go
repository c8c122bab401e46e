package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Put stores r under d. If a file of that size exists, it does not read r, unless the file is
// small and damaged: then it replaces the file.
func (dir *Dir) Put(ctx context.Context, d registry.Digest, size int64, r io.Reader) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	place, err := dir.place(d)
	if err != nil {
		return err
	}
	if isThere(place, d, size) {
		// The Put that stored it may not be complete yet.
		return dir.interpretError("store", d, syncFolder(filepath.Dir(place)))
	}
	return dir.Replace(ctx, d, size, r)
}

// Replace stores r under d. The new file takes the place of an earlier one.
func (dir *Dir) Replace(ctx context.Context, d registry.Digest, size int64, r io.Reader) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	place, err := dir.place(d)
	if err != nil {
		return err
	}
	incoming := filepath.Join(dir.path, incomingFolder)
	for _, folder := range []string{incoming, filepath.Dir(place)} {
		if err := dir.makeFolder(folder); err != nil {
			return dir.interpretError("store", d, err)
		}
	}
	temporary := filepath.Join(incoming, rand.Text())
	linked, err := dir.link(temporary, d, size, r)
	if err == nil && !linked {
		err = dir.write(ctx, temporary, d, size, r)
	}
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, place); err != nil {
		return dir.interpretError("store", d, errors.Join(err, os.Remove(temporary)))
	}
	return dir.interpretError("store", d, syncFolder(filepath.Dir(place)))
}

// isThere reports whether the content of d need not be stored again.
func isThere(place string, d registry.Digest, size int64) bool {
	info, err := os.Lstat(place)
	if err != nil || !info.Mode().IsRegular() || info.Size() != size {
		return false
	}
	if size > storage.CheckedBytes {
		return true
	}
	raw, err := os.ReadFile(place)
	return err == nil && d.Algorithm().FromBytes(raw) == d
}

// link hard-links a settled file into the store if possible. Its content is still checked and
// made durable. It reports whether it did.
func (dir *Dir) link(path string, d registry.Digest, size int64, r io.Reader) (linked bool, err error) {
	settled, ok := r.(storage.Settled)
	if !ok || size < storage.LinkFrom || os.Link(settled.Name(), path) != nil {
		return false, nil
	}
	defer func() {
		if err != nil {
			_ = os.Remove(path) // the error at hand says more
		}
	}()
	if err := hashInto(io.Discard, d, size, settled); err != nil {
		return false, dir.interpretError("store", d, err)
	}
	err = errors.Join(os.Chmod(path, blobMode), settled.Sync())
	return err == nil, dir.interpretError("store", d, err)
}

// write creates a durable file with the bytes of d, or no file.
func (dir *Dir) write(ctx context.Context, path string, d registry.Digest, size int64, r io.Reader) (err error) {
	fd, err := openFd(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, blobMode)
	if err != nil {
		return dir.interpretError("store", d, err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer func() {
		if closed := dir.interpretError("store", d, f.Close()); err == nil {
			err = closed
		}
		if err != nil {
			_ = os.Remove(path) // the error at hand says more
		}
	}()
	source := &source{ctx: ctx, r: r}
	if err := hashInto(&early{f: f}, d, size, source); err != nil {
		if source.err != nil {
			return fmt.Errorf("read what to store as blob %s: %w", d, source.err) // has its own code
		}
		return dir.interpretError("store", d, err)
	}
	return dir.interpretError("store", d, f.Sync())
}

// hashInto copies r to w and checks that the bytes have the size and digest of d. It reads at
// most one byte more than that.
func hashInto(w io.Writer, d registry.Digest, size int64, r io.Reader) error {
	hash, err := registry.NewHash(d)
	if err != nil {
		return err
	}
	n, err := copyHashed(w, hash, io.LimitReader(r, size))
	if err != nil {
		return err
	}
	extra, err := io.CopyN(io.Discard, r, 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case n < size:
		return registry.Errorf(registry.CodeDigest,
			"blob %s: received %d of %d bytes: nothing was stored; send the whole content again", d, n, size)
	case extra > 0:
		return registry.Errorf(registry.CodeDigest,
			"blob %s: received more than its %d bytes: nothing was stored; send the right content or the right size", d, size)
	}
	if got := digest.NewDigest(d.Algorithm(), hash); got != d {
		return registry.Errorf(registry.CodeDigest,
			"blob %s: the %d bytes sent have the digest %s: nothing was stored; send the right content or the right digest", d, n, got)
	}
	return nil
}
