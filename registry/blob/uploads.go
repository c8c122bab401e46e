package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
)

// Uploads is [registry.Uploads] in a [Dir]. An upload is a file under incoming/, named
// after its identifier and its owner, and its size is how far it has come: nothing
// else is written that could disagree with it. Finishing renames the file. One that is
// left alone is removed by [Dir.Sweep]. Make one with [NewUploads]; several, also in
// several processes, can share a directory.
type Uploads struct {
	dir  *Dir
	sums sums
}

var _ registry.Uploads = (*Uploads)(nil)

// NewUploads is the uploads that end in dir.
func NewUploads(dir *Dir) *Uploads { return &Uploads{dir: dir} }

// uploadMode lets its owner write. What the umask takes away stays away.
const uploadMode fs.FileMode = 0o644

// Begin makes an empty file. The identifier is a random UUID, version 4 of RFC 9562.
func (u *Uploads) Begin(ctx context.Context, owner registry.UploadOwner) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	id := fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	path := u.path(owner, id)
	if err := u.dir.makeFolder(filepath.Dir(path)); err != nil {
		return "", u.dir.interpret("begin", "upload "+id, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, uploadMode)
	if err == nil {
		err = f.Close()
	}
	return id, u.dir.interpret("begin", "upload "+id, err)
}

// Offset gives the size of the file.
func (u *Uploads) Offset(ctx context.Context, owner registry.UploadOwner, id string) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	info, err := os.Lstat(u.path(owner, id))
	if err != nil {
		return 0, u.interpretError("look at", id, err)
	}
	return info.Size(), nil
}

// Append writes at the end of the file, and hashes what it writes.
func (u *Uploads) Append(ctx context.Context, owner registry.UploadOwner, id string, offset int64, r io.Reader) (n int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	path := u.path(owner, id)
	f, size, err := openLocked(path, os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return 0, u.interpretError("append to", id, err)
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = u.interpretError("append to", id, closed)
		}
	}()
	if size != offset {
		return size, registry.Errorf(registry.CodeConflict, "upload %s: %d bytes are here, so the next ones cannot begin at %d; continue at the end", id, size, offset)
	}
	source := &source{ctx: ctx, r: r}
	n, err = u.write(f, path, size, source)
	if source.err != nil {
		return n, fmt.Errorf("read what to append to upload %s: %w", id, source.err) // keeps its own code
	}
	return n, u.interpretError("append to", id, err)
}

// write copies r behind the size bytes of f and gives the new size.
func (u *Uploads) write(f *os.File, path string, size int64, r *source) (int64, error) {
	w := io.Writer(onlyWriter{f})
	sum, ok := u.sums.take(path, size)
	if ok {
		w = io.MultiWriter(w, sum)
	}
	n, err := io.CopyBuffer(w, r, make([]byte, copyBytes))
	if err != nil && r.err == nil {
		// A write failed, perhaps after half of its bytes: the file knows.
		info, statErr := f.Stat()
		if statErr != nil {
			return size + n, errors.Join(err, statErr)
		}
		return info.Size(), err
	}
	if ok {
		u.sums.put(path, sum, size+n)
	}
	return size + n, err
}
