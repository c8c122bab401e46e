package format

import "io"

// window reads ahead, so that many small reads cost few large ones. Unlike other readers at an offset, it is for one
// caller at a time.
type window struct {
	r    io.ReaderAt
	size int64
	at   int64
	data []byte
}

func (w *window) ReadAt(p []byte, off int64) (int, error) {
	if off < w.at || off+int64(len(p)) > w.at+int64(len(w.data)) {
		buf := make([]byte, min(max(64<<10, int64(len(p))), w.size-off))
		n, err := w.r.ReadAt(buf, off)
		if n < len(p) {
			return copy(p, buf[:n]), err
		}
		w.at, w.data = off, buf[:n]
	}
	return copy(p, w.data[off-w.at:]), nil
}
