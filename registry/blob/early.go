package blob

import "os"

// flushBytes is the number of bytes after which writing to disk starts.
const flushBytes = 16 << 20

// early is the end of a file whose bytes are written to disk while it grows. By default the
// kernel keeps most of them in memory until the sync at the end, and the disk is idle until
// then.
type early struct {
	f       *os.File
	at      int64 // offset of the next byte
	flushed int64 // offset up to which writing to disk was started
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
