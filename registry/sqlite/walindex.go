package sqlite

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// headerBytes is the size of the header of a WAL index, of which there are two copies.
const headerBytes = 48

// mark is what a database was at: the header of its WAL index, which every commit of any
// process changes, for it counts them and has a checksum of all frames. SQLite itself
// compares it to learn whether what it has in memory is still so
// (https://sqlite.org/walformat.html, section 2.1).
type mark [headerBytes]byte

// walIndex is the WAL index of a database, beside which it is read: in a microsecond,
// where a query that SQLite answers takes ten and more.
type walIndex struct {
	path string
	file atomic.Pointer[os.File]
}

func newWALIndex(path string) *walIndex { return &walIndex{path: path + "-shm"} }

// mark gives the mark of the database as it is, or false where it is not known: when nobody
// has the database open, or somebody is just committing.
func (w *walIndex) mark() (mark, bool) {
	f := w.file.Load()
	if f == nil {
		f = indexes.open(w.path)
		w.file.Store(f)
	}
	var both [2 * headerBytes]byte
	if f == nil {
		return mark{}, false
	}
	_, err := f.ReadAt(both[:], 0)
	// After the bytes: if the file is still there, it was when they were read.
	if isGone(f) {
		w.file.CompareAndSwap(f, nil)
		return mark{}, false
	}
	if err != nil {
		return mark{}, false
	}
	m := mark(both[:headerBytes])
	const isInit = 12
	return m, m[isInit] == 1 && m == mark(both[headerBytes:])
}

// indexes are the WAL indexes that this process has opened, one file for each. To close one
// would end the locks that SQLite has on it in this process (POSIX has it so), so that it
// is closed only when it is gone: the last who closes a database removes it.
var indexes = openIndexes{files: map[string]*os.File{}}

type openIndexes struct {
	mu    sync.Mutex
	files map[string]*os.File
}

// open gives nil where there is no such file.
func (o *openIndexes) open(path string) *os.File {
	o.mu.Lock()
	defer o.mu.Unlock()
	for p, f := range o.files {
		if isGone(f) {
			_ = f.Close() // it was only read
			delete(o.files, p)
		}
	}
	if f, ok := o.files[path]; ok {
		return f
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	o.files[path] = f
	return f
}

// isGone reports whether a file has no name any more, or was closed for having none. Another
// goroutine may close it at the same time, so its descriptor is not taken out of it.
func isGone(f *os.File) bool {
	info, err := f.Stat()
	return err != nil || info.Sys().(*syscall.Stat_t).Nlink == 0
}
