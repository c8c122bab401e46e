package blob

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// full is a writer that takes so many bytes, and with them a part of the next write.
type full struct {
	bytes.Buffer
	room int
}

var (
	errFull   = errors.New("no space is left")
	errBroken = errors.New("the connection broke")
)

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.room {
		n, _ := f.Buffer.Write(p[:f.room])
		f.room = 0
		return n, errFull
	}
	f.room -= len(p)
	return f.Buffer.Write(p)
}

// Whoever breaks off, reader or writer, what was written is a beginning of what was to be
// read, and what was hashed is what was written: uploads go on from there.
func TestCopyHashed(t *testing.T) {
	t.Parallel()
	content := make([]byte, 6*copyBytes+firstBytes)
	for i := range content {
		content[i] = byte(i>>11 ^ i)
	}
	// Sizes near those of buffers, where mistakes would be.
	size := rapid.Custom(func(t *rapid.T) int {
		edge := rapid.SampledFrom([]int{0, firstBytes, firstBytes + copyBytes, firstBytes + 2*copyBytes, firstBytes + 6*copyBytes}).Draw(t, "edge")
		return min(max(edge+rapid.IntRange(-3, 3).Draw(t, "beside"), 0), len(content))
	})
	rapid.Check(t, func(t *rapid.T) {
		n, room := size.Draw(t, "size"), size.Draw(t, "room")
		r := io.Reader(bytes.NewReader(content[:n]))
		if rapid.Bool().Draw(t, "in pieces") {
			r = iotest.HalfReader(r)
		}
		want := error(nil)
		if rapid.Bool().Draw(t, "breaks") {
			r, want = io.MultiReader(r, iotest.ErrReader(errBroken)), errBroken
		}
		if rapid.Bool().Draw(t, "with the error at once") {
			r = iotest.DataErrReader(r)
		}
		if room < n {
			want = errFull
		}
		w, hash := &full{room: room}, sha256.New()
		got, err := copyHashed(w, hash, r)
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("got %v, want %v", err, want)
		}
		if got != int64(min(n, room)) || !bytes.Equal(w.Bytes(), content[:got]) {
			t.Errorf("%d bytes were written, want the first %d", got, min(n, room))
		}
		if sum := sha256.Sum256(w.Bytes()); !bytes.Equal(hash.Sum(nil), sum[:]) {
			t.Error("other bytes were hashed than were written")
		}
	})
}
