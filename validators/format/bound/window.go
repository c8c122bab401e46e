package bound

import "io"

// Window reads ahead, so that many small reads cost few large ones. Unlike other readers at an offset, it is for one
// caller at a time.
type Window struct {
	R    io.ReaderAt
	Size int64
	at   int64
	data []byte
}

// ReadAt reads from R, or from the bytes that were read ahead.
func (w *Window) ReadAt(p []byte, off int64) (int, error) {
	if off < w.at || off+int64(len(p)) > w.at+int64(len(w.data)) {
		buf := make([]byte, min(max(64<<10, int64(len(p))), w.Size-off))
		n, err := w.R.ReadAt(buf, off)
		if n < len(p) {
			return copy(p, buf[:n]), err
		}
		w.at, w.data = off, buf[:n]
	}
	return copy(p, w.data[off-w.at:]), nil
}
