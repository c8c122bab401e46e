package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// session is an upload with its file open, for the only writer on this machine.
type session struct {
	u     *Uploads
	state storage.UploadState // as recorded
	notes notes
	file  *os.File
	// left is a file that another machine may still write to, so this session continues in a
	// copy of it. It is empty for most sessions.
	left string

	offset int64     // bytes that are in the file now
	sum    hash.Hash // of those bytes
}

// errLost means that a file does not have the received bytes.
var errLost = errors.New("received bytes are lost")

// open opens the file of an upload and checks that it has the bytes of the state. The caller
// closes the session. Errors: fs.ErrNotExist; unix.EWOULDBLOCK if another process on this
// machine is writing.
func (u *Uploads) open(ctx context.Context, state storage.UploadState) (*session, error) {
	n, err := readNotes(state)
	if err != nil {
		return nil, err
	}
	sum, err := state.Sum()
	if err != nil {
		return nil, err
	}
	if err := u.dir.makeFolder(u.path("")); err != nil {
		return nil, err
	}
	s := &session{u: u, state: state, notes: n, offset: state.Offset, sum: sum}
	flag := os.O_RDWR
	elsewhere := n.Boot != "" && n.Boot != u.boot
	switch {
	case elsewhere && n.Busy:
		s.left = u.path(n.File)
		s.notes.File = state.ID + "." + rand.Text()
		flag |= os.O_CREATE | os.O_EXCL
	case state.Offset == 0:
		flag |= os.O_CREATE
	}
	if s.file, err = openLocked(s.path(), flag); err != nil {
		return nil, err
	}
	if err := s.check(ctx, elsewhere); err != nil {
		return nil, errors.Join(s.giveUp(ctx, err), s.file.Close())
	}
	return s, nil
}

// check ensures that the file has the bytes of the state. If they are in a file that is left,
// it copies them first. It does not read bytes again that this machine wrote.
func (s *session) check(ctx context.Context, elsewhere bool) error {
	switch {
	case s.state.Offset == 0:
		return nil
	case s.left != "":
		old, err := os.Open(s.left)
		if err != nil {
			return err
		}
		defer old.Close()
		return s.rehash(ctx, old, s.file)
	case elsewhere:
		return s.rehash(ctx, s.file, io.Discard)
	}
	info, err := s.file.Stat()
	if err == nil && info.Size() < s.state.Offset {
		err = errLost
	}
	return err
}

// rehash copies the bytes of the state and checks that their hash is the recorded one.
func (s *session) rehash(ctx context.Context, from io.ReaderAt, to io.Writer) error {
	sum, err := storage.UploadState{}.Sum()
	if err != nil {
		return err
	}
	r := &source{ctx: ctx, r: io.NewSectionReader(from, 0, s.state.Offset)}
	n, err := io.CopyBuffer(io.MultiWriter(sum, onlyWriter{to}), r, make([]byte, copyBytes))
	if err == nil && (n != s.state.Offset || string(sum.Sum(nil)) != string(s.sum.Sum(nil))) {
		err = errLost
	}
	return err
}

// giveUp ends an upload whose bytes are lost, and cleans up after other errors.
func (s *session) giveUp(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errLost):
		if failed := s.u.states.EndUpload(ctx, s.state.ID, s.state.Version); failed != nil {
			return failed
		}
		err = registry.Errorf(registry.CodeNotFound,
			"upload %s: %w, because the machine that received them failed; begin a new upload", s.state.ID, err)
	case s.left == "":
		return err // the file is not this session's own
	}
	if failed := os.Remove(s.path()); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
		return errors.Join(err, failed)
	}
	return err
}

// claim makes this session the only writer on any machine: a process that read the state before
// can no longer swap it.
func (s *session) claim(ctx context.Context) error {
	if err := s.save(ctx, true); err != nil {
		return s.giveUp(ctx, err)
	}
	s.abandon()
	return s.file.Truncate(s.state.Offset)
}

// abandon removes the file that this session does not continue. A process that still writes to
// it cannot record its bytes any more.
func (s *session) abandon() {
	if s.left != "" {
		_ = os.Remove(s.left) // otherwise Sweep removes it
		s.left = ""
	}
}

// write appends r to the file, and records its progress from time to time.
func (s *session) write(ctx context.Context, r io.Reader) error {
	if _, err := s.file.Seek(s.offset, io.SeekStart); err != nil {
		return err
	}
	w := &early{f: s.file, at: s.offset, flushed: s.offset}
	for {
		n, err := copyHashed(w, s.sum, io.LimitReader(r, savedBytes))
		s.offset += n
		if err != nil || n < savedBytes { // fewer bytes: end of r
			return err
		}
		if err := s.save(ctx, true); err != nil {
			return err
		}
	}
}

// save records how many bytes the upload has.
func (s *session) save(ctx context.Context, busy bool) error {
	next, err := s.state.Advanced(s.offset, s.sum)
	if err != nil {
		return err
	}
	s.notes.Boot, s.notes.Busy = s.u.boot, busy
	next.Place = s.notes.encode()
	if err := s.u.states.SwapUpload(ctx, next); err != nil {
		return err
	}
	next.Version++
	s.state = next
	return nil
}

func (s *session) path() string { return s.u.path(s.notes.File) }

// path returns the path of a name under incoming/.
func (u *Uploads) path(name string) string { return filepath.Join(u.dir.path, incomingFolder, name) }

// openLocked opens a file for the caller alone, until the caller closes it. (The lock may have
// no effect for other machines.)
func openLocked(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag, uploadMode)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// Before the lock was acquired, the file may have become a blob, which must not be written
	// to.
	opened, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	named, err := os.Lstat(path)
	if err == nil && !os.SameFile(opened, named) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lockFile locks f. While a child process is being started, it briefly holds a copy of every
// open file, so lockFile tries a few times.
func lockFile(f *os.File) error {
	for tries := 0; ; tries++ {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || tries == 20 {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}
