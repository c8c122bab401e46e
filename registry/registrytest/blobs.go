package registrytest

import (
	"bytes"
	"context"
	_ "crypto/sha256" // digests may name it
	_ "crypto/sha512" // as above
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Damage changes a stored byte of d without the knowledge of the storage.
type Damage func(t *testing.T, d registry.Digest)

// DamageFile returns the Damage of storage that keeps blobs in files of a folder, or behind
// which a server does.
func DamageFile(folder string) Damage {
	return func(t *testing.T, d registry.Digest) {
		t.Helper()
		path := filepath.Join(folder, "blobs", string(d.Algorithm()), d.Encoded()[:2], d.Encoded())
		raw, err := os.ReadFile(path)
		must(t, err)
		raw[0] ^= 1
		must(t, os.Remove(path))
		must(t, os.WriteFile(path, raw, 0o600))
	}
}

// TestBlobs is the contract of [storage.RepairableBlobs].
func TestBlobs(t *testing.T, open func(t *testing.T) (storage.RepairableBlobs, Damage)) {
	for name, test := range map[string]func(*testing.T, storage.RepairableBlobs, Damage){
		"put over damaged bytes":     testBlobsPutRepairs,
		"replace over damaged bytes": testBlobsReplace,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blobs, damage := open(t)
			test(t, blobs, damage)
		})
	}
	for name, test := range map[string]func(*testing.T, storage.Blobs){
		"reads what was put":           testBlobsRoundTrip,
		"open content can be searched": testBlobsSeek,
		"put of what is there":         testBlobsPutAgain,
		"wrong bytes":                  testBlobsWrongBytes,
		"reader that fails":            testBlobsReaderFails,
		"canceled":                     testBlobsCanceled,
		"malformed digests":            testBlobsMalformed,
		"not found":                    testBlobsNotFound,
		"delete":                       testBlobsDelete,
		"digests":                      testBlobsDigests,
		"many writers":                 testBlobsConcurrent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blobs, _ := open(t)
			test(t, blobs)
		})
	}
}

func put(t *testing.T, blobs storage.Blobs, content string) registry.Digest {
	t.Helper()
	must(t, blobs.Put(t.Context(), d(content), int64(len(content)), strings.NewReader(content)))
	return d(content)
}

func wantBlob(t *testing.T, blobs storage.Blobs, d registry.Digest, want []byte) {
	t.Helper()
	b, size, err := blobs.Open(t.Context(), d)
	if err != nil {
		t.Error(err)
		return
	}
	got, err := io.ReadAll(b)
	if err := errors.Join(err, b.Close()); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(got, want) || size != int64(len(want)) {
		t.Errorf("blob %s has %d bytes and says %d, want the %d that were put", d, len(got), size, len(want))
	}
}

// wantNothing wants no blob to be held.
func wantNothing(t *testing.T, blobs storage.Blobs, d registry.Digest) {
	t.Helper()
	_, _, err := blobs.Open(t.Context(), d)
	wantCode(t, err, registry.CodeNotFound)
	if held := collect(t, blobs.Digests(t.Context())); len(held) != 0 {
		t.Errorf("held are %v, want nothing", held)
	}
}

func testBlobsRoundTrip(t *testing.T, blobs storage.Blobs) {
	for _, size := range []int{0, 1, 1000, 3<<20 + 1} {
		content := bytes.Repeat([]byte{byte(size), 7, 11}, size/3+1)[:size]
		for _, algorithm := range []digest.Algorithm{digest.SHA256, digest.SHA512} {
			d := algorithm.FromBytes(content)
			must(t, blobs.Put(t.Context(), d, int64(size), iotest.HalfReader(bytes.NewReader(content))))
			wantBlob(t, blobs, d, content)
		}
	}
}

func testBlobsSeek(t *testing.T, blobs storage.Blobs) {
	b, _, err := blobs.Open(t.Context(), put(t, blobs, "0123456789"))
	must(t, err)
	defer b.Close()
	part := make([]byte, 3)
	_, err = b.ReadAt(part, 4)
	must(t, err)
	_, err = b.Seek(-2, io.SeekEnd)
	must(t, err)
	rest, err := io.ReadAll(b)
	must(t, err)
	if string(part) != "456" || string(rest) != "89" {
		t.Errorf("got %q at 4 and %q at the end, want 456 and 89", part, rest)
	}
}

func testBlobsPutAgain(t *testing.T, blobs storage.Blobs) {
	content := put(t, blobs, "again")
	unread := iotest.ErrReader(errors.New("read although it is there"))
	must(t, blobs.Put(t.Context(), content, 5, unread))
	wantBlob(t, blobs, content, []byte("again"))
}

// Put does not count bytes as stored that do not match, and what it cannot repair stays.
func testBlobsPutRepairs(t *testing.T, blobs storage.RepairableBlobs, damage Damage) {
	for _, size := range []int{1, 1000, storage.CheckedBytes} {
		content := strings.Repeat("x", size)
		d := put(t, blobs, content)
		damage(t, d)
		wantCode(t, blobs.Put(t.Context(), d, int64(size), strings.NewReader(strings.Repeat("y", size))), registry.CodeDigest)
		put(t, blobs, content)
		wantBlob(t, blobs, d, []byte(content))
	}
}

// Replace stores bytes of any size whatever is there, or nothing.
func testBlobsReplace(t *testing.T, blobs storage.RepairableBlobs, damage Damage) {
	replace := func(content string) {
		t.Helper()
		must(t, blobs.Replace(t.Context(), d(content), int64(len(content)), strings.NewReader(content)))
		wantBlob(t, blobs, d(content), []byte(content))
	}
	large := strings.Repeat("x", storage.CheckedBytes+1)
	replace(large)
	replace(large)
	damage(t, d(large))
	replace(large)
	wantCode(t, blobs.Replace(t.Context(), d(large), int64(len(large)), strings.NewReader("x")), registry.CodeDigest)
	wantBlob(t, blobs, d(large), []byte(large))
	wantCode(t, blobs.Replace(t.Context(), "sha256:abc", 0, strings.NewReader("")), registry.CodeInvalid)
}

func testBlobsWrongBytes(t *testing.T, blobs storage.Blobs) {
	for name, c := range map[string]struct {
		sent string
		size int64
	}{
		"other bytes":   {"wrong", 5},
		"too few":       {"righ", 5},
		"too many":      {"right!", 5},
		"none":          {"", 5},
		"size too big":  {"right", 6},
		"size too low":  {"right", 4},
		"size zero":     {"right", 0},
		"size negative": {"right", -1},
	} {
		err := blobs.Put(t.Context(), d("right"), c.size, strings.NewReader(c.sent))
		if registry.CodeOf(err) != registry.CodeDigest {
			t.Errorf("%s: got %v, want code %s", name, err, registry.CodeDigest)
		}
		wantNothing(t, blobs, d("right"))
	}
	put(t, blobs, "right") // and nothing is in its way
}

func testBlobsReaderFails(t *testing.T, blobs storage.Blobs) {
	broken := errors.New("connection lost")
	for _, sent := range []string{"", "whol", "whole"} {
		r := io.MultiReader(strings.NewReader(sent), iotest.ErrReader(broken))
		if err := blobs.Put(t.Context(), d("whole"), 5, r); !errors.Is(err, broken) {
			t.Errorf("after %q: got %v, want the reader's error", sent, err)
		}
		wantNothing(t, blobs, d("whole"))
	}
}

func testBlobsCanceled(t *testing.T, blobs storage.Blobs) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := blobs.Put(ctx, d("late"), 4, strings.NewReader("late")); !errors.Is(err, context.Canceled) {
		t.Errorf("put: got %v, want context.Canceled", err)
	}
	wantNothing(t, blobs, d("late"))
	put(t, blobs, "held")
	wantCanceled(t, blobs.Digests)
}

func testBlobsMalformed(t *testing.T, blobs storage.Blobs) {
	for _, bad := range []registry.Digest{"", "sha256:", "sha256:abc", "md5:d41d8cd98f00b204e9800998ecf8427e",
		"sha256:../../../../../../../../../../etc/passwd", registry.Digest("sha256:" + strings.Repeat("A", 64)),
		registry.Digest("sha384:" + strings.Repeat("a", 96))} {
		wantCode(t, blobs.Put(t.Context(), bad, 0, strings.NewReader("")), registry.CodeInvalid)
		_, _, err := blobs.Open(t.Context(), bad)
		wantCode(t, err, registry.CodeInvalid)
		wantCode(t, blobs.Delete(t.Context(), bad), registry.CodeInvalid)
	}
}

func testBlobsNotFound(t *testing.T, blobs storage.Blobs) {
	wantNothing(t, blobs, d("nowhere"))
	put(t, blobs, "here")
	_, _, err := blobs.Open(t.Context(), d("nowhere"))
	wantCode(t, err, registry.CodeNotFound)
}

func testBlobsDelete(t *testing.T, blobs storage.Blobs) {
	gone, kept := put(t, blobs, "gone"), put(t, blobs, "kept")
	for range 2 {
		must(t, blobs.Delete(t.Context(), gone))
		_, _, err := blobs.Open(t.Context(), gone)
		wantCode(t, err, registry.CodeNotFound)
	}
	wantBlob(t, blobs, kept, []byte("kept"))
	put(t, blobs, "gone")
	wantBlob(t, blobs, gone, []byte("gone"))
}

func testBlobsDigests(t *testing.T, blobs storage.Blobs) {
	want := make(map[registry.Digest]bool)
	for i := range 20 {
		want[put(t, blobs, fmt.Sprint("blob ", i))] = true
	}
	for _, err := range blobs.Digests(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		break // breaking off is allowed
	}
	held := collect(t, blobs.Digests(t.Context()))
	for _, d := range held {
		if !want[d] {
			t.Errorf("lists %s, which was not put or is listed twice", d)
		}
		delete(want, d)
	}
	if len(want) > 0 {
		t.Errorf("does not list %v", want)
	}
}

func testBlobsConcurrent(t *testing.T, blobs storage.Blobs) {
	var wg sync.WaitGroup
	for writer := range 8 {
		wg.Go(func() {
			for i := range 8 {
				content := strings.Repeat(fmt.Sprint("shared ", i), 1000)
				if writer%2 == 1 {
					content += fmt.Sprint(writer)
				}
				d := d(content)
				if err := blobs.Put(t.Context(), d, int64(len(content)), strings.NewReader(content)); err != nil {
					t.Error(err)
				}
				wantBlob(t, blobs, d, []byte(content))
			}
		})
	}
	wg.Wait()
	if held := collect(t, blobs.Digests(t.Context())); len(held) != 8+4*8 {
		t.Errorf("%d digests are held, want %d", len(held), 8+4*8)
	}
}
