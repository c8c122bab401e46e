//go:build cgo

package endtoend

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// owners is a job whose data directories, databases and buckets can be named at will.
type owners struct {
	*programtest.Job
	root  string
	store *registrytest.S3Server
	plain []string
}

func newOwners(t *testing.T) *owners {
	t.Helper()
	root := t.TempDir()
	o := &owners{root: root, store: registrytest.StartS3Server(t)}
	o.Job = programtest.NewJob(t, programtest.Program(t), filepath.Join(root, "digits"), append(programtest.Environment(root, programtest.Cache(t)), o.store.Env()...)...)
	o.plain = o.Env
	return o
}

// in points the verbs at a data directory, a prefix of the bucket and a database or "".
func (o *owners) in(data, prefix, database string) {
	o.T.Helper()
	if err := os.MkdirAll(filepath.Join(o.root, data), 0o700); err != nil {
		o.T.Fatal(err)
	}
	o.Env = append(slices.Clone(o.plain), "MLPROMOTE_DATA="+filepath.Join(o.root, data), "MLPROMOTE_STORAGE="+o.store.URL(prefix), "MLPROMOTE_DATABASE="+database)
}

// stored counts the objects of the first catalog.
func (o *owners) stored() (n int) {
	o.T.Helper()
	err := filepath.WalkDir(o.store.Folder("team"), func(_ string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		o.T.Fatal(err)
	}
	return n
}

// keysOf copies the keys of one data directory to another.
func (o *owners) keysOf(from, to string) {
	o.T.Helper()
	keys := filepath.Join(o.root, to, "keys")
	if err := errors.Join(os.RemoveAll(keys), programtest.CopyTree(filepath.Join(o.root, from, "keys"), keys)); err != nil {
		o.T.Fatal(err)
	}
}

// says runs a verb, which must succeed, and gives all that it says.
func (o *owners) says(args ...string) string {
	o.T.Helper()
	out, err := o.Command(args...).CombinedOutput()
	if err != nil {
		o.T.Fatalf("mlpromote %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// pulled wants the head of prod to be there as a whole.
func (o *owners) pulled(name string) {
	o.T.Helper()
	o.Must("pull", "vision/digits", "--env", "prod", "-o", filepath.Join(o.root, name))
}

// A replica with a catalog of its own that is started with the bucket of another catalog, or
// with a prefix that contains it or lies in it, is refused and deletes nothing. It need not
// have been there before: replicas in a cluster begin with an empty data directory.
func TestBucketOfAnotherCatalog(t *testing.T) {
	t.Parallel()
	o := newOwners(t)
	server := pgtest.Shared(t)
	first, second := server.Database(t), server.Database(t)
	o.in("one", "team/staging", first)
	o.Release()
	o.in("two", "mine", second)
	o.Release()

	before := o.stored()
	o.in("three", "team/staging", second)
	wantRefusal(o.Job, 2, []string{"list"}, "belongs to catalog", "and this one is")
	wantRefusal(o.Job, 2, []string{"gc", "--grace", "1m"}, "belongs to catalog")
	wantRefusal(o.Job, 2, []string{"serve", "--listen", "127.0.0.1:0"}, "belongs to catalog")
	wantRefusal(o.Job, 2, []string{"restore", "--take-over"}, "belongs to catalog")
	for data, prefix := range map[string]string{"four": "team", "five": "team/staging/eu"} {
		o.in(data, prefix, "")
		wantRefusal(o.Job, 2, []string{"build"}, "overlap, and each has its own content", "team/staging")
	}
	o.in("six", "theirs", second)
	wantRefusal(o.Job, 2, []string{"list"}, "is in s3://mlpromote-test/mine, not in s3://mlpromote-test/theirs")
	if after := o.stored(); after != before {
		t.Errorf("%d objects are left of %d", after, before)
	}
	o.in("one", "team/staging", first)
	o.pulled("pulled")
	o.Check("the first catalog")
	o.in("seven", "mine", second)
	o.keysOf("two", "seven")
	o.pulled("pulled too")
	o.Check("the second catalog, from an empty directory")
}

// A copy of a catalog reads the bucket of the original and changes nothing there, whether it
// was restored from a backup, copied as a file, or is a copy of the database. When it takes
// over, the original changes nothing any more.
func TestTakeOverBucket(t *testing.T) {
	t.Parallel()
	t.Run("restored", func(t *testing.T) {
		t.Parallel()
		o := newOwners(t)
		o.in("one", "team", "")
		o.Release()
		saved := filepath.Join(o.root, "saved")
		o.Must("backup", saved)
		o.in("two", "team", "")
		if said := o.says("restore", saved, "--lost-events-accepted"); !strings.Contains(said, "restore --take-over") {
			t.Errorf("restore says %q, want how to take the bucket over", said)
		}
		o.takenOver("one", "two", "", "")
	})
	t.Run("copied", func(t *testing.T) {
		t.Parallel()
		o := newOwners(t)
		o.in("one", "team", "")
		o.Release()
		if err := programtest.CopyTree(filepath.Join(o.root, "one"), filepath.Join(o.root, "two")); err != nil {
			t.Fatal(err)
		}
		o.takenOver("one", "two", "", "")
	})
	t.Run("database", func(t *testing.T) {
		t.Parallel()
		o := newOwners(t)
		server := pgtest.Shared(t)
		first := server.Database(t)
		o.in("one", "team", first)
		o.Release()
		o.takenOver("one", "two", first, server.Copy(t, first))
	})
}

// served wants a service of a copy to let clients pull, to push nothing and to collect nothing.
func (o *owners) served(data string) {
	o.T.Helper()
	server := &programtest.Service{Program: o.Program, Dir: filepath.Join(o.root, data), Env: o.Env, Flags: []string{"--gc-interval", "1s", "--gc-grace", "1m"}}
	server.MustStart(o.T)
	defer server.Kill()
	client := *o.Job
	client.Env = append(slices.Clone(o.plain), "MLPROMOTE_REGISTRY="+server.URL, "MLPROMOTE_DATA="+filepath.Join(o.root, data+"-client"), "MLPROMOTE_KEYS="+filepath.Join(o.root, data, "keys"))
	client.Must("resolve", programtest.Model, "--env", "prod")
	wantRefusal(&client, 1, []string{"build"}, "can be read but not written")
	programtest.Eventually(o.T, "the service says that it does not collect", func() bool {
		return strings.Contains(server.Said(), "content can be read here and not changed") && strings.Contains(server.Said(), "collection failed")
	})
}

// takenOver has a copy of a catalog, which takes its bucket over.
func (o *owners) takenOver(original, copied, database, copiedDatabase string) {
	o.T.Helper()
	o.in(copied, "team", copiedDatabase)
	o.keysOf(original, copied)
	o.pulled("from the copy")
	before := o.stored()
	wantRefusal(o.Job, 1, []string{"gc", "--grace", "1m"}, "nothing was changed", "restore --take-over")
	o.Bump()
	wantRefusal(o.Job, 1, []string{"build"}, "nothing was changed")
	o.served(copied)
	if after := o.stored(); after != before {
		o.T.Errorf("the copy made %d objects of %d", after, before)
	}

	// What the original stores meanwhile is not the copy's to delete.
	o.in(original, "team", database)
	o.Promote()
	head := o.Head("prod")
	o.in(copied, "team", copiedDatabase)
	wantRefusal(o.Job, 1, []string{"gc", "--grace", "1m"}, "nothing was changed")
	o.in(original, "team", database)
	o.pulled("from the original")
	o.Check("the original")

	o.in(copied, "team", copiedDatabase)
	if said := o.says("restore", "--take-over", "--lost-events-accepted"); !strings.Contains(said, "cannot change it any more") {
		o.T.Errorf("take-over says %q", said)
	}
	o.Must("restore", "--take-over")
	o.in(original, "team", database)
	wantRefusal(o.Job, 1, []string{"gc", "--grace", "1m"}, "nothing was changed")
	o.Bump()
	wantRefusal(o.Job, 1, []string{"build"}, "nothing was changed")
	if o.Head("prod") != head {
		o.T.Error("the head of the original moved")
	}
	o.in(copied, "team", copiedDatabase)
	o.Must("gc", "--grace", "1m")
	o.Release()
	o.pulled("from the new owner")
	o.Check("the new owner")
}
