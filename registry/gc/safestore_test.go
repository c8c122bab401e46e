package gc_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/storage"
)

// removing begins a removal of content, which lasts for so long.
func (w *world) removing(t *testing.T, d registry.Digest, lasting time.Duration) {
	t.Helper()
	if err := w.Mark(t.Context(), w.Now().Add(-time.Hour), []registry.Digest{d}); err != nil {
		t.Fatal(err)
	}
	w.later += time.Second
	begun, err := w.BeginRemoval(t.Context(), storage.RemovalRequest{ID: "removal", Digests: []registry.Digest{d}, Before: w.Now(), Lasting: lasting})
	if err != nil || len(begun) != 1 {
		t.Fatalf("%d removals have begun, error %v; want one", len(begun), err)
	}
}

func (w *world) safe() gc.SafeStore {
	return gc.SafeStore{Garbage: ports{w}, Remover: blobPort{w.blobs, w}}
}

// A write waits for a removal of the same bytes, as long as its caller does.
func TestWritesWaitForRemovals(t *testing.T) {
	t.Parallel()
	const text = "content"
	d := digest.FromString(text)
	for name, write := range map[string]func(w *world, ctx context.Context) error{
		"a blob": func(w *world, ctx context.Context) error {
			return w.safe().Blobs(w.blobs).Put(ctx, d, int64(len(text)), strings.NewReader(text))
		},
		"an upload": func(w *world, ctx context.Context) error {
			uploads := mem.NewUploads(w.blobs)
			owner := storage.UploadOwner{Repository: "staging/m"}
			id, err := uploads.Begin(context.Background(), owner)
			if err == nil {
				_, err = uploads.Append(context.Background(), owner, id, 0, strings.NewReader(text))
			}
			if err == nil {
				_, err = w.safe().Uploads(uploads).Finish(ctx, owner, id, d)
			}
			return err
		},
		"a member": func(w *world, ctx context.Context) error {
			return w.safe().Refs(w.DB, w.blobs).AddBlob(ctx, "staging/m", d, int64(len(text)))
		},
		"an uploaded member": func(w *world, ctx context.Context) error {
			upload := storage.NewUpload(storage.UploadOwner{Repository: "staging/m"})
			if err := w.CreateUpload(context.Background(), upload); err != nil {
				return err
			}
			_, err := w.safe().Refs(w.DB, w.blobs).AddUploaded(ctx, upload.Owner, upload.ID, d, int64(len(text)))
			return err
		},
		"a manifest": func(w *world, ctx context.Context) error {
			return w.safe().Refs(w.DB, w.blobs).PutManifest(ctx, "staging/m", storage.Manifest{Digest: d, Size: int64(len(text))})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.put(t, "", text)
			if err := write(w, t.Context()); err != nil {
				t.Fatalf("without a removal: %v", err)
			}
			ended, end := context.WithCancel(t.Context())
			end()
			if err := write(w, ended); err == nil {
				t.Error("for a caller who is gone: no error")
			}
			w = newWorld()
			w.put(t, "", text)
			w.removing(t, d, time.Hour)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if err := write(w, ctx); !registry.HasCode(err, registry.CodeUnavailable) || !strings.Contains(err.Error(), "it is being deleted") {
				t.Errorf("during a removal: error %v, want CodeUnavailable", err)
			}
			w.later += time.Hour // the removal has expired, as after a crash
			for _, w.fail = range []string{"Await", "TakeOver"} {
				if err := write(w, t.Context()); !errors.Is(err, errPort) {
					t.Errorf("%s of a removal that has expired: error %v, want %v", w.fail, err, errPort)
				}
			}
			w.fail = ""
			if err := write(w, t.Context()); err != nil {
				t.Errorf("after the removal: %v", err)
			}
			if _, marked := w.MarkedNow(d); marked || !w.has(t, d) {
				t.Errorf("marked: %v, stored: %v; want false and true", marked, w.has(t, d))
			}
		})
	}
}

// What a repository holds is there, or its writer learns that it has to be sent again.
func TestHeldContentIsVerified(t *testing.T) {
	t.Parallel()
	d := digest.FromString("content")
	for name, c := range map[string]struct {
		edit func(w *world)
		says string // empty: it is held
		is   error
	}{
		"stored":        {func(*world) {}, "", nil},
		"deleted":       {func(w *world) { _ = w.blobs.Delete(context.Background(), d) }, "send it again", nil},
		"another size":  {func(w *world) { w.changed[d] = []byte("short") }, "send it again", nil},
		"a broken disk": {func(w *world) { w.fail = "Open" }, "", errPort},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.put(t, "", "content")
			c.edit(w)
			err := w.safe().Refs(w.DB, blobPort{w.blobs, w}).AddBlob(t.Context(), "staging/m", d, 7)
			switch {
			case c.is != nil && !errors.Is(err, c.is):
				t.Errorf("error %v, want %v", err, c.is)
			case c.is == nil && c.says == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case c.says != "" && (!registry.HasCode(err, registry.CodeUnavailable) || !strings.Contains(err.Error(), c.says)):
				t.Errorf("error %v, want CodeUnavailable with %q", err, c.says)
			}
		})
	}
}

// redirecting is storage that clients can pull from.
type redirecting struct{ storage.Blobs }

func (redirecting) Redirect(context.Context, registry.Digest, time.Duration) (string, bool, error) {
	return "https://storage.example.com/x", true, nil
}

// Storage that clients can pull from stays so.
func TestSafeBlobsRedirect(t *testing.T) {
	t.Parallel()
	type redirector interface {
		Redirect(ctx context.Context, d registry.Digest, expiry time.Duration) (string, bool, error)
	}
	w := newWorld()
	if _, ok := w.safe().Blobs(w.blobs).(redirector); ok {
		t.Error("storage without addresses has them")
	}
	there, ok := w.safe().Blobs(redirecting{w.blobs}).(redirector)
	if !ok {
		t.Fatal("the addresses of the storage are lost")
	}
	if url, ok, err := there.Redirect(t.Context(), "", 0); url != "https://storage.example.com/x" || !ok || err != nil {
		t.Errorf("address %q, %v, error %v; want that of the storage", url, ok, err)
	}
}

// One of several replicas collects, and tells what came of it.
func TestSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put(t, "staging/m", "stray")
	w.later += 2 * time.Hour
	type told struct {
		did gc.Collected
		err error
	}
	run := func(holder string, c *gc.Collector, leases storage.Leases, for_ time.Duration) (all []told) {
		ctx, cancel := context.WithTimeout(t.Context(), for_)
		defer cancel()
		gc.Schedule{Collector: c, Leases: leases, Holder: holder, Interval: 10 * time.Millisecond,
			Tell: func(_ context.Context, did gc.Collected, _ time.Duration, err error) {
				all = append(all, told{did, err})
				cancel()
			}}.Run(ctx)
		return all
	}
	if all := run("a", w.collector(t), w.DB, time.Minute); len(all) != 1 || all[0].err != nil || all[0].did.Marked != 1 {
		t.Errorf("told %+v, want one collection that marked one record", all)
	}
	if ok, err := w.AcquireLease(t.Context(), "collection", "b", time.Hour); !ok || err != nil {
		t.Errorf("the lease of a replica that has ended: %v, error %v; want another one to get it", ok, err)
	}
	if all := run("a", w.collector(t), w.DB, 50*time.Millisecond); len(all) != 0 {
		t.Errorf("told %+v while another replica has the lease, want nothing", all)
	}
	if all := run("a", w.collector(t), broken{}, time.Minute); len(all) != 1 || !errors.Is(all[0].err, errPort) {
		t.Errorf("told %+v by a catalog that does not answer, want its error", all)
	}
}

// broken is a catalog that does not answer.
type broken struct{}

func (broken) AcquireLease(context.Context, string, string, time.Duration) (bool, error) {
	return false, errPort
}

func (broken) ReleaseLease(context.Context, string, string) error { return errPort }
