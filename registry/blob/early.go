package blob

import "os"

// flushBytes is after how many bytes the disk is set to work.
const flushBytes = 16 << 20

// early is a file, from its end on, that goes to disk while it is being written. Left to
// itself the kernel waits with most of it for the sync at the end, and the disk idles
// until then.
type early struct {
	f       *os.File
	at      int64 // where the next byte goes
	flushed int64 // up to where the disk has been told
}

func (e *early) Write(p []byte) (int, error) {
	n, err := e.f.Write(p)
	e.at += int64(n)
	if e.at-e.flushed >= flushBytes {
		startFlush(e.f, e.flushed, e.at-e.flushed)
		e.flushed = e.at
	}
	return n, err
}
