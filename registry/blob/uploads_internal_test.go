package blob

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/storage"
)

var owner = storage.UploadOwner{Repository: "staging/a"}

// machines is two machines that share a folder and a database, but no locks.
func machines(t *testing.T) (path string, first, second *Uploads) {
	t.Helper()
	path = t.TempDir()
	db := mem.New()
	first, second = NewUploads(NewDir(path), db), NewUploads(NewDir(path), db)
	if first.boot != second.boot || first.boot == "" {
		t.Fatalf("two values on one machine are started as %q and %q", first.boot, second.boot)
	}
	second.boot = "another"
	return path, first, second
}

func start(t *testing.T, u *Uploads, content string) string {
	t.Helper()
	id, err := u.Begin(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Append(t.Context(), owner, id, 0, strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	return id
}

func finish(t *testing.T, u *Uploads, id, content string) {
	t.Helper()
	d := digest.FromString(content)
	if _, err := u.Finish(t.Context(), owner, id, d); err != nil {
		t.Fatal(err)
	}
	place, err := u.dir.place(d)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(place); err != nil || string(got) != content {
		t.Errorf("the blob is %q (%v), want %q", got, err, content)
	}
}

func TestMachinesAlternate(t *testing.T) {
	t.Parallel()
	_, first, second := machines(t)
	id := start(t, first, "one ")
	for i, piece := range []string{"two ", "three ", "four"} {
		u := []*Uploads{second, first, second}[i]
		n, err := u.Offset(t.Context(), owner, id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.Append(t.Context(), owner, id, n, strings.NewReader(piece)); err != nil {
			t.Fatal(err)
		}
	}
	finish(t, first, id, "one two three four")
}

// What a machine counted and then lost with its power is found out by reading.
func TestPowerFailure(t *testing.T) {
	t.Parallel()
	for _, finish := range []bool{false, true} {
		path, first, second := machines(t)
		id := start(t, first, "content")
		if err := os.WriteFile(filepath.Join(path, incomingFolder, id), make([]byte, 7), 0o644); err != nil {
			t.Fatal(err)
		}
		d := digest.FromString("content")
		var err error
		if finish {
			_, err = second.Finish(t.Context(), owner, id, d)
		} else {
			_, err = second.Append(t.Context(), owner, id, 7, strings.NewReader("!"))
		}
		if registry.CodeOf(err) != registry.CodeNotFound || !errors.Is(err, errLost) {
			t.Errorf("got %v, want that bytes are lost", err)
		}
		if _, err := second.Offset(t.Context(), owner, id); registry.CodeOf(err) != registry.CodeNotFound {
			t.Errorf("the upload is still there: %v", err)
		}
		if _, _, err := second.dir.Open(t.Context(), d); registry.CodeOf(err) != registry.CodeNotFound {
			t.Errorf("there is a blob: %v", err)
		}
	}
}

// A machine that hangs in the middle of a chunk cannot spoil what another one made of
// the upload meanwhile, although nothing keeps it from writing.
func TestMachineTakesOver(t *testing.T) {
	t.Parallel()
	for name, goOn := range map[string]func(*testing.T, *Uploads, string) string{
		"append": func(t *testing.T, u *Uploads, id string) string {
			if _, err := u.Append(t.Context(), owner, id, 6, strings.NewReader("fast")); err != nil {
				t.Fatal(err)
			}
			return "begun fast"
		},
		"finish": func(*testing.T, *Uploads, string) string { return "begun " },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, first, second := machines(t)
			id := start(t, first, "begun ")
			r, w := io.Pipe()
			hung := make(chan error, 1)
			go func() {
				_, err := first.Append(t.Context(), owner, id, 6, r)
				hung <- err
			}()
			if _, err := io.WriteString(w, "slow"); err != nil {
				t.Fatal(err)
			}
			content := goOn(t, second, id)
			if _, err := io.WriteString(w, " and long"); err != nil {
				t.Fatal(err)
			}
			finish(t, second, id, content)
			if _, err := io.WriteString(w, " after the end"); err != nil {
				t.Fatal(err)
			}
			w.Close()
			if err := <-hung; registry.CodeOf(err) != registry.CodeConflict && registry.CodeOf(err) != registry.CodeNotFound {
				t.Errorf("who hung got %v, want CodeConflict or CodeNotFound", err)
			}
			place, err := second.dir.place(digest.FromString(content))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(place); err != nil || string(got) != content {
				t.Errorf("the blob became %q (%v), want %q", got, err, content)
			}
			if left, err := filepath.Glob(filepath.Join(path, incomingFolder, "*")); err != nil || len(left) != 0 {
				t.Errorf("left are %v (%v), want nothing", left, err)
			}
		})
	}
}

// A claim of a process that was killed on this machine is over with its lock.
func TestClaimOfTheDead(t *testing.T) {
	t.Parallel()
	path, first, _ := machines(t)
	id := start(t, first, "begun ")
	state, err := first.states.Upload(t.Context(), owner, id)
	if err != nil {
		t.Fatal(err)
	}
	s, err := first.open(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.file.WriteAt([]byte("half"), 6); err != nil {
		t.Fatal(err)
	}
	if err := s.file.Close(); err != nil { // as the kernel does
		t.Fatal(err)
	}
	if n, err := first.Append(t.Context(), owner, id, 6, strings.NewReader("on")); n != 8 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	finish(t, first, id, "begun on")
	if left, err := filepath.Glob(filepath.Join(path, incomingFolder, "*")); err != nil || len(left) != 0 {
		t.Errorf("left are %v (%v), want nothing", left, err)
	}
}

// A record of another kind of storage names no file of this one.
func TestForeignNotes(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"", "{}", `{"file":"../blobs/x"}`, `{"multipart":"x"}`, `{"file":7}`} {
		db := mem.New()
		u := NewUploads(NewDir(t.TempDir()), db)
		state := storage.NewUpload(owner)
		state.Place = place
		if err := u.states.CreateUpload(t.Context(), state); err != nil {
			t.Fatal(err)
		}
		if _, err := u.Append(t.Context(), owner, state.ID, 0, strings.NewReader("x")); registry.CodeOf(err) != registry.CodeInternal {
			t.Errorf("%s: got %v, want CodeInternal", place, err)
		}
		db.Now = func() time.Time { return time.Now().Add(LeftoverAge * 2) }
		if n, err := u.Sweep(t.Context()); n != 1 || err != nil {
			t.Errorf("%s: swept %d, %v; want 1", place, n, err)
		}
	}
}
