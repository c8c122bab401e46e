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
)

// session is an upload with its file open, for the only writer on this machine.
type session struct {
	u     *Uploads
	state registry.UploadState // as it is recorded
	notes notes
	file  *os.File
	// left is a file that another machine may still write into: this session goes on in
	// a copy of it. Empty for most.
	left string

	offset int64     // bytes that are in the file by now
	sum    hash.Hash // of those bytes
}

// errLost is that of a file that does not have the bytes that came.
var errLost = errors.New("received bytes are lost")

// open opens the file of an upload and makes sure that it has the bytes of the state.
// Who got a session closes it. Errors: fs.ErrNotExist; unix.EWOULDBLOCK when somebody on
// this machine is writing.
func (u *Uploads) open(ctx context.Context, state registry.UploadState) (*session, error) {
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

// check makes sure that the file has the bytes of the state, which it brings there first
// from a file that is left. Those of this machine are not read again.
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

// rehash copies the bytes of the state and wants them to be the ones that were hashed.
func (s *session) rehash(ctx context.Context, from io.ReaderAt, to io.Writer) error {
	sum, err := registry.UploadState{}.Sum()
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

// giveUp ends an upload whose bytes are lost, and tidies up behind other errors.
func (s *session) giveUp(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errLost):
		if failed := s.u.states.EndUpload(ctx, s.state.ID, s.state.Version); failed != nil {
			return failed
		}
		err = registry.Errorf(registry.CodeNotFound, "upload %s: %w, because the machine that received them failed; begin a new upload", s.state.ID, err)
	case s.left == "":
		return err // the file is not this session's own
	}
	if failed := os.Remove(s.path()); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
		return errors.Join(err, failed)
	}
	return err
}

// claim makes this session the only one that writes, on any machine: whoever read the
// state before cannot swap it any more.
func (s *session) claim(ctx context.Context) error {
	if err := s.save(ctx, true); err != nil {
		return s.giveUp(ctx, err)
	}
	s.abandon()
	return s.file.Truncate(s.state.Offset)
}

// abandon removes the file that this session does not go on with. Whoever writes into it
// will not be able to say so.
func (s *session) abandon() {
	if s.left != "" {
		_ = os.Remove(s.left) // else Sweep finds it
		s.left = ""
	}
}

// write writes r behind the bytes that are there, and says now and then how far it is.
func (s *session) write(ctx context.Context, r io.Reader) error {
	if _, err := s.file.Seek(s.offset, io.SeekStart); err != nil {
		return err
	}
	w := &early{f: s.file, at: s.offset, flushed: s.offset}
	for {
		n, err := copyHashed(w, s.sum, io.LimitReader(r, savedBytes))
		s.offset += n
		if err != nil || n < savedBytes { // fewer: that was all
			return err
		}
		if err := s.save(ctx, true); err != nil {
			return err
		}
	}
}

// save records how far the upload has come.
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

// path is that of a name under incoming/.
func (u *Uploads) path(name string) string { return filepath.Join(u.dir.path, incomingFolder, name) }

// openLocked opens a file for the caller alone, until he closes it. (On another machine
// the lock may mean nothing.)
func openLocked(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag, uploadMode)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// Before the lock was ours, the file may have become a blob, which nobody may write.
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

// lockFile locks f. A child process that is just being started holds a copy of every open
// file for a moment, so a lock that is taken is asked for a few times more.
func lockFile(f *os.File) error {
	for tries := 0; ; tries++ {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || tries == 20 {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}
