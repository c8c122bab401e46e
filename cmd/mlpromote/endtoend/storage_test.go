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
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// TestObjectStorage does the whole job on a data directory whose content is in a bucket:
// by itself, then served with clients that are sent to the bucket, and while the bucket
// is away.
func TestObjectStorage(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	store := registrytest.StartS3Server(t)
	data := filepath.Join(root, "served")
	own := append(programtest.Environment(root, programtest.Cache(t)), store.Env()...)
	c := programtest.NewJob(t, programtest.Program(t), filepath.Join(root, "digits"), own...)
	atHome := append(c.Env, "MLPROMOTE_DATA="+data)
	inBucket := append(slices.Clone(atHome), "MLPROMOTE_STORAGE="+store.URL("team")+"&redirect=1m")

	c.Env = inBucket
	c.Release()
	c.Check("the job on a bucket")
	if _, err := os.Stat(filepath.Join(data, "blobs")); err == nil {
		t.Error("there are blobs in the data directory")
	}
	c.Env = atHome
	wantRefusal(c, 2, []string{"build"}, "is in s3://mlpromote-test/team", "MLPROMOTE_STORAGE=s3://mlpromote-test/team")
	c.Env = append(slices.Clone(inBucket), "MLPROMOTE_STORAGE="+store.URL("another"))
	wantRefusal(c, 2, []string{"list"}, "is in s3://mlpromote-test/team")
	c.Env = append(slices.Clone(inBucket), "MLPROMOTE_DATA="+filepath.Join(root, "stranger"))
	wantRefusal(c, 2, []string{"build"}, "s3://mlpromote-test/team belongs to catalog", "and this one is")

	server := programtest.NewService(t, c.Program, root, append(store.Env(), "MLPROMOTE_STORAGE="+store.URL("team")+"&redirect=1m")...)
	t.Cleanup(func() {
		if strings.Contains(server.Said(), "a-secret") {
			t.Errorf("the log has the secret:\n%s", server.Said())
		}
	})
	server.MustStartAndStop(t)
	if err := server.ShareKeys(); err != nil {
		t.Fatal(err)
	}
	c.Env = append(os.Environ(), programtest.Environment(root, programtest.Cache(t))...)
	c.Env = append(c.Env, "MLPROMOTE_REGISTRY="+server.URL, "MLPROMOTE_DATA="+server.Client)
	c.Release()
	c.Check("the job on a service")
	pulled := filepath.Join(root, "pulled")
	c.Must("pull", "vision/digits", "--env", "prod", "-o", pulled)
	if files, err := os.ReadDir(pulled); err != nil || len(files) == 0 {
		t.Errorf("pulled are %v (%v)", files, err)
	}

	proven := c.Head("prod")
	store.Stop()
	c.Bump()
	wantRefusal(c, 9, []string{"build"}, "does not respond")
	if c.Head("prod") != proven {
		t.Error("the head moved while the bucket was away")
	}
	if err := store.Start(); err != nil {
		t.Fatal(err)
	}
	c.Promote()
	c.Check("the bucket is back")
	if c.Head("prod") == proven {
		t.Error("the job did not go on")
	}
}

// TestBackupOfBucket saves a data directory whose content is in a bucket, loses both, and
// makes them again in another bucket.
func TestBackupOfBucket(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	store := registrytest.StartS3Server(t)
	data, saved := filepath.Join(root, "data"), filepath.Join(root, "saved")
	c := programtest.NewJob(t, programtest.Program(t), filepath.Join(root, "digits"),
		append(programtest.Environment(root, programtest.Cache(t)), store.Env()...)...)
	plain := c.Env
	in := func(data, prefix string) []string {
		return append(slices.Clone(plain), "MLPROMOTE_DATA="+data, "MLPROMOTE_STORAGE="+store.URL(prefix))
	}
	c.Env = in(data, "team")
	c.Release()
	c.Must("backup", saved)
	c.Must("restore", saved, "--verify")
	head, keys := c.Head("prod"), filepath.Join(root, "keys")
	if err := errors.Join(os.Rename(filepath.Join(data, "keys"), keys), os.RemoveAll(data)); err != nil {
		t.Fatal(err)
	}

	// While the bucket is away nothing is restored, and what was begun goes on later.
	c.Env = in(data, "restored")
	store.Stop()
	wantRefusal(c, 9, []string{"restore", saved, "--lost-events-accepted"}, "does not respond")
	if err := store.Start(); err != nil {
		t.Fatal(err)
	}
	c.Must("restore", saved, "--lost-events-accepted")
	if _, err := os.Stat(filepath.Join(data, "blobs")); err == nil {
		t.Error("there are blobs in the data directory")
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(data, "keys")), os.Rename(keys, filepath.Join(data, "keys"))); err != nil {
		t.Fatal(err)
	}
	if got := c.Head("prod"); got != head {
		t.Errorf("the head is %s, want %s", got, head)
	}
	c.Check("restored into a bucket")
	pulled := filepath.Join(root, "pulled")
	c.Must("pull", "vision/digits", "--env", "prod", "-o", pulled)
	c.Release()

	// The same backup makes a directory that has its content in files, too.
	c.Env = append(slices.Clone(plain), "MLPROMOTE_DATA="+filepath.Join(root, "files"))
	c.Must("restore", saved, "--lost-events-accepted")
	if files, err := os.ReadDir(filepath.Join(root, "files", "blobs")); err != nil || len(files) == 0 {
		t.Errorf("content in files is %v (%v)", files, err)
	}
	if got := c.Head("prod"); got != head {
		t.Errorf("the head in files is %s, want %s", got, head)
	}
}

// wantRefusal wants a verb to end with an exit code and to say why.
func wantRefusal(c *programtest.Job, code int, verb []string, says ...string) {
	c.T.Helper()
	said := c.Refused(code, verb...)
	for _, part := range says {
		if !strings.Contains(said, part) {
			c.T.Errorf("mlpromote %s says %q, want %q in it", verb, said, part)
		}
	}
}

// A data directory that has content keeps it, whatever storage is named later.
func TestStorageOfOthers(t *testing.T) {
	t.Parallel()
	store := registrytest.StartS3Server(t)
	root := t.TempDir()
	data := filepath.Join(root, "data")
	if err := os.MkdirAll(filepath.Join(data, "blobs"), 0o700); err != nil {
		t.Fatal(err)
	}
	env := append(programtest.Environment(root, programtest.Cache(t)), store.Env()...)
	c := &programtest.Job{T: t, Program: programtest.Program(t), Dir: root, Env: append(os.Environ(), env...)}
	c.Env = append(c.Env, "MLPROMOTE_DATA="+data, "MLPROMOTE_STORAGE="+store.URL("x"))
	wantRefusal(c, 2, []string{"list"}, "has its own content")
	c.Env = append(c.Env, "MLPROMOTE_STORAGE=s3://KEY:hunter2@models")
	wantRefusal(c, 2, []string{"list"}, "a URL must not contain credentials")
	c.Env = append(c.Env, "MLPROMOTE_STORAGE=/srv/models")
	wantRefusal(c, 2, []string{"list"}, "want s3://BUCKET")
}
