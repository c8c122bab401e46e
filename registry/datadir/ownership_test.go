package datadir_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/s3"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/registry/storage"
)

// shared is the object store of these tests, or nil.
var shared *registrytest.S3Server

func TestMain(m *testing.M) {
	code, err := registrytest.WithS3Server(func(s *registrytest.S3Server) int {
		shared = s
		return m.Run()
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// place has content.
type place struct {
	blobs   storage.Blobs
	marks   storage.ContentMarks
	remover storage.Remover
	name    string
}

// kinds are the kinds of places. Each function makes a root, and returns a function from a
// path to the place there.
func kinds(t *testing.T) map[string]func(t *testing.T) func(path string) place {
	t.Helper()
	return map[string]func(t *testing.T) func(path string) place{
		"directory": func(t *testing.T) func(string) place {
			root := t.TempDir()
			return func(path string) place {
				dir := filepath.Join(root, path)
				must(t, os.MkdirAll(dir, 0o700))
				blobs := blob.NewDir(dir)
				return place{blobs, datadir.Dir{Path: dir}, blobs, dir}
			}
		},
		"bucket": func(t *testing.T) func(string) place {
			if shared == nil {
				t.Skip("MLPROMOTE_S3SERVER names no program: make test builds one")
			}
			root := strings.ToLower(rand.Text())
			return func(path string) place {
				config, err := s3.ParseURL(shared.URL(strings.TrimSuffix(root+"/"+path, "/")))
				must(t, err)
				b, err := s3.Open(t.Context(), config)
				must(t, err)
				return place{b, b, b, b.String()}
			}
		},
	}
}

func newCatalog(t *testing.T) (db *sqlite.DB, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "registry.db")
	return openCatalog(t, path), path
}

func openCatalog(t *testing.T, path string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// own relates a catalog to a place.
func own(db *sqlite.DB, p place) *datadir.Ownership {
	return &datadir.Ownership{
		Catalog: db, Marks: p.marks, Storage: p.name, Name: p.name, Now: time.Now, Survey: datadir.Survey(db, p.blobs, false),
		Outlast: func(context.Context) error { return nil },
	}
}

// If many catalogs open one empty place at the same moment, exactly one gets it. The others
// are refused, then and later.
func TestOneOwner(t *testing.T) {
	t.Parallel()
	for kind, newRoot := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			at := newRoot(t)("models")
			const catalogs = 6
			var all [catalogs]*datadir.Ownership
			for n := range all {
				db, _ := newCatalog(t)
				all[n] = own(db, at)
			}
			for range 2 {
				owners := 0
				for n, verdict := range openAll(t, all[:]) {
					switch verdict.Access {
					case datadir.Owned:
						owners++
					case datadir.Refused:
					default:
						t.Errorf("catalog %d got %q (%s), want to own the place or be refused", n, verdict.Access, verdict.Reason)
					}
				}
				if owners != 1 {
					t.Fatalf("%d catalogs own the place, want 1", owners)
				}
			}
		})
	}
}

// openAll opens all at the same moment.
func openAll(t *testing.T, all []*datadir.Ownership) []datadir.Verdict {
	t.Helper()
	verdicts := make([]datadir.Verdict, len(all))
	start := make(chan struct{})
	var running sync.WaitGroup
	for n, o := range all {
		running.Go(func() {
			<-start
			var err error
			if verdicts[n], err = o.Open(t.Context()); err != nil && !registry.HasCode(err, registry.CodeInvalid) {
				t.Errorf("catalog %d: %v", n, err)
			}
		})
	}
	close(start)
	running.Wait()
	return verdicts
}

// If one of two prefixes contains the other, at most one gets an owner, in either order and
// also at the same moment.
func TestOverlappingPrefixes(t *testing.T) {
	t.Parallel()
	newRoot := kinds(t)["bucket"]
	for range 5 {
		at := newRoot(t)
		outer, _ := newCatalog(t)
		inner, _ := newCatalog(t)
		both := []*datadir.Ownership{own(outer, at("")), own(inner, at("staging"))}
		owners := 0
		for _, verdict := range openAll(t, both) {
			if verdict.Access == datadir.Owned {
				owners++
			}
		}
		for n, o := range both {
			verdict, err := o.Open(t.Context())
			if err != nil && !registry.HasCode(err, registry.CodeInvalid) {
				t.Error(err)
			}
			if verdict.Access == datadir.Owned {
				owners = max(owners, 1)
				if other, _ := both[1-n].Open(t.Context()); other.Access == datadir.Owned {
					t.Errorf("both %s and %s have an owner", both[0].Name, both[1].Name)
				}
			}
		}
		if owners > 1 {
			t.Errorf("%d owners at once, want at most 1", owners)
		}
	}
}

// A catalog from before there were marks gets the place that has what it names, also if the
// directory does not record that place. Another place is refused.
func TestAdopt(t *testing.T) {
	t.Parallel()
	for kind, newRoot := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			at := newRoot(t)
			db, _ := newCatalog(t)
			right, wrong, empty := at("right"), at("wrong"), at("empty")
			evidence := put(t, right.blobs, "evidence")
			put(t, wrong.blobs, "of another registry")
			must(t, db.AddBlob(t.Context(), "staging/m", evidence, 8))
			external := digest.FromString("kept on another registry")
			for environment, d := range map[string]registry.Digest{"staging": evidence, "prod": external} {
				_, err := db.Apply(t.Context(), storage.Change{Event: history.Event{
					Kind: history.EventAttach, Environment: environment, Model: "m", Evidence: []registry.Digest{d},
				}})
				must(t, err)
			}
			for _, p := range []place{wrong, empty} {
				if v := opened(t, own(db, p)); v.Access != datadir.Refused {
					t.Errorf("a place without what the catalog names is %q, want it refused", v.Access)
				}
			}
			if v := opened(t, own(db, right)); v.Access != datadir.Owned {
				t.Errorf("the place that has what the catalog names is %q (%s), want it owned", v.Access, v.Reason)
			}
			stranger, _ := newCatalog(t)
			if v := opened(t, own(stranger, wrong)); v.Access != datadir.Refused {
				t.Errorf("content beside an empty catalog is %q, want it refused", v.Access)
			}
			if v := opened(t, own(db, wrong)); v.Access != datadir.Refused {
				t.Errorf("another place of a catalog that has its content elsewhere is %q, want it refused", v.Access)
			}
		})
	}
}

// A restored catalog and a copied one can read the content, but change nothing until they take
// over. After that the previous owner changes nothing.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	for kind, newRoot := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			at := newRoot(t)("models")
			original, path := newCatalog(t)
			o := own(original, at)
			if v := opened(t, o); v.Access != datadir.Owned {
				t.Fatalf("a new place is %q, want it owned", v.Access)
			}
			before := wantOwner(t, o, at, true)
			restored, copied := copyOf(t, path), copyOf(t, path)
			must(t, restored.Renew(t.Context(), "renewed"))
			for name, db := range map[string]*sqlite.DB{"restored": restored, "copied": copied} {
				if v := opened(t, own(db, at)); v.Access != datadir.ReadOnly {
					t.Errorf("content of a %s catalog is %q (%s), want it read-only", name, v.Access, v.Reason)
				}
				wantOwner(t, own(db, at), at, false)
			}
			for _, change := range []struct{ from, to *sqlite.DB }{{original, restored}, {restored, copied}, {copied, original}} {
				if _, err := own(change.to, at).TakeOver(t.Context()); err != nil {
					t.Fatal(err)
				}
				wantOwner(t, own(change.from, at), at, false)
				if epoch := wantOwner(t, own(change.to, at), at, true); epoch <= before {
					t.Errorf("the epoch after a take-over is %d, and was %d", epoch, before)
				} else {
					before = epoch
				}
			}
			stranger, _ := newCatalog(t)
			_, err := own(stranger, at).TakeOver(t.Context())
			wantCode(t, err, registry.CodeInvalid)
			if again, err := own(original, at).TakeOver(t.Context()); again != nil || err != nil {
				t.Errorf("taking over content that it owns: got %v, %v; want nil", again, err)
			}
		})
	}
}

// The previous owner may be deleting during a take-over. Content that exists when the take-over
// has succeeded stays, and an interrupted take-over does not own the content.
func TestTakeOverOutlastsDeletions(t *testing.T) {
	t.Parallel()
	at := kinds(t)["directory"](t)("models")
	original, path := newCatalog(t)
	opened(t, own(original, at))
	d := put(t, at.blobs, "garbage of the original that the restored catalog needs")
	restored := copyOf(t, path)
	must(t, restored.Renew(t.Context(), "renewed"))

	permit, err := at.remover.Permit(t.Context())
	must(t, err)
	wantOwner(t, own(original, at), at, true) // as a collector checks before it deletes
	o := own(restored, at)
	canceled, cancel := context.WithCancel(t.Context())
	o.Outlast = func(context.Context) error {
		wantOwner(t, own(original, at), at, false)
		cancel()
		return at.remover.Await(canceled)
	}
	if _, err := o.TakeOver(t.Context()); err == nil {
		t.Error("took over content that the previous owner is deleting")
	}
	wantOwner(t, own(restored, at), at, false)

	o.Outlast = func(ctx context.Context) error {
		must(t, permit.Delete(ctx, d))
		must(t, permit.Close())
		return at.remover.Await(ctx)
	}
	_, err = o.TakeOver(t.Context())
	must(t, err)
	wantOwner(t, own(restored, at), at, true)
}

// wantOwner checks whether content can be changed, and returns the epoch.
func wantOwner(t *testing.T, o *datadir.Ownership, at place, want bool) int64 {
	t.Helper()
	epoch, err := o.OwnsContent(t.Context())
	if (err == nil) != want {
		t.Errorf("owns the content: got %v (%v), want %v", err == nil, err, want)
	}
	text := rand.Text()
	err = datadir.NewGuard(o, 0).Blobs(at.blobs).Put(t.Context(), digest.FromString(text), int64(len(text)), strings.NewReader(text))
	if (err == nil) != want {
		t.Errorf("a blob can be stored: got %v (%v), want %v", err == nil, err, want)
	}
	return epoch
}

// Without its mark, content cannot be changed, and the catalog can take it over again.
func TestMarkDeleted(t *testing.T) {
	t.Parallel()
	for kind, newRoot := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			at := newRoot(t)("models")
			db, _ := newCatalog(t)
			o := own(db, at)
			opened(t, o)
			put(t, at.blobs, "content")
			_, tag, err := at.marks.ContentMark(t.Context())
			must(t, err)
			must(t, at.marks.DeleteContentMark(t.Context(), tag))
			if v := opened(t, o); v.Access != datadir.ReadOnly {
				t.Errorf("content whose mark is gone is %q, want it read-only", v.Access)
			}
			wantOwner(t, o, at, false)
			_, err = o.TakeOver(t.Context())
			must(t, err)
			wantOwner(t, o, at, true)

			beside, _ := newCatalog(t)
			o = own(beside, newRoot(t)("models"))
			o.Beside = true
			opened(t, o)
			_, tag, err = o.Marks.ContentMark(t.Context())
			must(t, err)
			must(t, o.Marks.DeleteContentMark(t.Context(), tag))
			if v := opened(t, o); v.Access != datadir.Owned {
				t.Errorf("content beside its catalog, whose mark is gone, is %q (%s), want it owned", v.Access, v.Reason)
			}
		})
	}
}

// counted counts the calls of an owner.
type counted struct {
	storage.ContentOwner
	asked int
}

func (c *counted) OwnsContent(ctx context.Context) (int64, error) {
	c.asked++
	return c.ContentOwner.OwnsContent(ctx)
}

// A guard caches the owner's answer. Without an owner, content can only be read.
func TestGuard(t *testing.T) {
	t.Parallel()
	content := blob.NewDir(t.TempDir())
	d := put(t, content, "x")
	for _, c := range []struct {
		every time.Duration
		want  int
	}{{0, 6}, {time.Hour, 1}} {
		owner := &counted{ContentOwner: registrytest.Owned{}}
		blobs := datadir.NewGuard(owner, c.every).Blobs(content)
		for range 3 {
			must(t, blobs.Delete(t.Context(), d))
			put(t, blobs, "x")
		}
		if owner.asked != c.want {
			t.Errorf("with a check every %v, %d checks for 6 changes, want %d", c.every, owner.asked, c.want)
		}
	}
	ownerless := datadir.NewGuard(nil, 0)
	wantCode(t, ownerless.Blobs(content).Delete(t.Context(), d), registry.CodeUnavailable)
	uploads := ownerless.Uploads(nil)
	who := storage.UploadOwner{Repository: "staging/m"}
	_, begun := uploads.Begin(t.Context(), who)
	_, appended := uploads.Append(t.Context(), who, "x", 0, bytes.NewReader(nil))
	_, finished := uploads.Finish(t.Context(), who, "x", d)
	_, swept := uploads.Sweep(t.Context())
	for _, err := range []error{begun, appended, finished, swept, uploads.Cancel(t.Context(), who, "x")} {
		wantCode(t, err, registry.CodeUnavailable)
	}
	if _, _, err := ownerless.Blobs(content).Open(t.Context(), d); err != nil {
		t.Errorf("read content without an owner: %v", err)
	}
}

func opened(t *testing.T, o *datadir.Ownership) datadir.Verdict {
	t.Helper()
	v, err := o.Open(t.Context())
	must(t, err)
	return v
}

// copyOf copies the file of a catalog, as an administrator might by hand.
func copyOf(t *testing.T, path string) *sqlite.DB {
	t.Helper()
	to := filepath.Join(t.TempDir(), "registry.db")
	must(t, sqlite.Snapshot(t.Context(), path, to))
	return openCatalog(t, to)
}

func put(t *testing.T, blobs storage.Blobs, text string) registry.Digest {
	t.Helper()
	d := digest.FromString(text)
	must(t, blobs.Put(t.Context(), d, int64(len(text)), strings.NewReader(text)))
	return d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code registry.Code) {
	t.Helper()
	if err == nil || registry.CodeOf(err) != code {
		t.Errorf("got error %v (%s), want one with code %s", err, registry.CodeOf(err), code)
	}
}
