//go:build cgo

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/registrytest"
)

// TestObjectStorage does the whole job on a data directory whose content is in a bucket:
// by itself, then served with clients that are sent to the bucket, and while the bucket
// is away.
func TestObjectStorage(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	store := registrytest.StartS3Server(t)
	own := append(environment(root, testCache(t)), store.Env()...)
	data := filepath.Join(root, "served")
	c := &crash{t: t, program: fastProgram(t), dir: filepath.Join(root, "digits"), env: append(os.Environ(), own...)}
	if err := errors.Join(copyTree(filepath.Join(examples, "digits"), c.dir), oneTarget(c.dir)); err != nil {
		t.Fatal(err)
	}
	atHome := append(c.env, "MLPROMOTE_DATA="+data)
	inBucket := append(atHome[:len(atHome):len(atHome)], "MLPROMOTE_STORAGE="+store.URL("team")+"&redirect=1m")

	c.env = inBucket
	c.bump()
	for _, verb := range []string{"build", "verify", "promote"} {
		c.must(verb)
	}
	c.check(0, "the job on a bucket")
	if _, err := os.Stat(filepath.Join(data, "blobs")); err == nil {
		t.Error("there are blobs in the data directory")
	}
	c.env = atHome
	c.wantFailure("build", 2, "is in s3://mlpromote-test/team", "MLPROMOTE_STORAGE=s3://mlpromote-test/team")
	c.env = append(inBucket[:len(inBucket):len(inBucket)], "MLPROMOTE_STORAGE="+store.URL("another"))
	c.wantFailure("list", 2, "is in s3://mlpromote-test/team")
	c.env = append(inBucket[:len(inBucket):len(inBucket)], "MLPROMOTE_DATA="+filepath.Join(root, "stranger"))
	c.wantFailure("build", 2, "s3://mlpromote-test/team has content", "knows nothing of it")

	server := &served{program: c.program, dir: data, client: filepath.Join(root, "client"), env: inBucket}
	if err := errors.Join(server.start(), copyTree(filepath.Join(data, "keys"), filepath.Join(server.client, "keys"))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.stop(); err != nil {
			t.Error(err)
		}
		if strings.Contains(server.stderr.String(), "a-secret") {
			t.Errorf("the log has the secret:\n%s", server.stderr.String())
		}
	})
	c.env = append(os.Environ(), append(environment(root, testCache(t)), "MLPROMOTE_REGISTRY="+server.url, "MLPROMOTE_DATA="+server.client)...)
	c.bump()
	for _, verb := range []string{"build", "verify", "promote"} {
		c.must(verb)
	}
	c.check(0, "the job on a service")
	pulled := filepath.Join(root, "pulled")
	c.must("pull", "vision/digits", "--env", "prod", "-o", pulled)
	if files, err := os.ReadDir(pulled); err != nil || len(files) == 0 {
		t.Errorf("pulled are %v (%v)", files, err)
	}

	proven := c.head("prod")
	store.Stop()
	c.bump()
	c.wantFailure("build", 1, "does not answer")
	if c.head("prod") != proven {
		t.Error("the head moved while the bucket was away")
	}
	if err := store.Start(); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"build", "verify", "promote"} {
		c.must(verb)
	}
	c.check(0, "the bucket is back")
	if c.head("prod") == proven {
		t.Error("the job did not go on")
	}
}

// TestBackupOfBucket saves a data directory whose content is in a bucket, loses both, and
// makes them again in another bucket.
func TestBackupOfBucket(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	store := registrytest.StartS3Server(t)
	env := append(append(os.Environ(), environment(root, testCache(t))...), store.Env()...)
	data, saved := filepath.Join(root, "data"), filepath.Join(root, "saved")
	in := func(data, prefix string) []string {
		return append(env[:len(env):len(env)], "MLPROMOTE_DATA="+data, "MLPROMOTE_STORAGE="+store.URL(prefix))
	}
	c := &crash{t: t, program: fastProgram(t), dir: filepath.Join(root, "digits"), env: in(data, "team")}
	if err := errors.Join(copyTree(filepath.Join(examples, "digits"), c.dir), oneTarget(c.dir)); err != nil {
		t.Fatal(err)
	}
	c.bump()
	for _, verb := range []string{"build", "verify", "promote"} {
		c.must(verb)
	}
	c.must("backup", saved)
	c.must("restore", saved, "--verify")
	head, keys := c.head("prod"), filepath.Join(root, "keys")
	if err := errors.Join(os.Rename(filepath.Join(data, "keys"), keys), os.RemoveAll(data)); err != nil {
		t.Fatal(err)
	}

	// While the bucket is away nothing is restored, and what was begun goes on later.
	c.env = in(data, "restored")
	store.Stop()
	c.wantFailures([]string{"restore", saved}, 1, "does not answer")
	if err := store.Start(); err != nil {
		t.Fatal(err)
	}
	c.must("restore", saved)
	if _, err := os.Stat(filepath.Join(data, "blobs")); err == nil {
		t.Error("there are blobs in the data directory")
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(data, "keys")), os.Rename(keys, filepath.Join(data, "keys"))); err != nil {
		t.Fatal(err)
	}
	if got := c.head("prod"); got != head {
		t.Errorf("the head is %s, want %s", got, head)
	}
	c.check(0, "restored into a bucket")
	pulled := filepath.Join(root, "pulled")
	c.must("pull", "vision/digits", "--env", "prod", "-o", pulled)
	c.bump()
	for _, verb := range []string{"build", "verify", "promote"} {
		c.must(verb)
	}

	// The same backup makes a directory that has its content in files, too.
	c.env = append(env[:len(env):len(env)], "MLPROMOTE_DATA="+filepath.Join(root, "files"))
	c.must("restore", saved)
	if files, err := os.ReadDir(filepath.Join(root, "files", "blobs")); err != nil || len(files) == 0 {
		t.Errorf("content in files is %v (%v)", files, err)
	}
	if got := c.head("prod"); got != head {
		t.Errorf("the head in files is %s, want %s", got, head)
	}
}

// wantFailure wants a verb to end with an exit code and to say why.
func (c *crash) wantFailure(verb string, code int, says ...string) {
	c.t.Helper()
	c.wantFailures([]string{verb}, code, says...)
}

// wantFailures is wantFailure for a verb with arguments.
func (c *crash) wantFailures(args []string, code int, says ...string) {
	c.t.Helper()
	cmd := c.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != code {
		c.t.Errorf("mlpromote %s: got %v, want exit code %d\n%s%s", args, err, code, out, stderr.Bytes())
	}
	for _, part := range says {
		if !strings.Contains(stderr.String(), part) {
			c.t.Errorf("mlpromote %s says %q, want %q in it", args, stderr.String(), part)
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
	c := &crash{t: t, program: fastProgram(t), dir: root, env: append(append(os.Environ(), environment(root, testCache(t))...), store.Env()...)}
	c.env = append(c.env, "MLPROMOTE_DATA="+data, "MLPROMOTE_STORAGE="+store.URL("x"))
	c.wantFailure("list", 2, "has content of its own")
	c.env = append(c.env, "MLPROMOTE_STORAGE=s3://KEY:hunter2@models")
	c.wantFailure("list", 2, "credentials do not belong into a URL")
	c.env = append(c.env, "MLPROMOTE_STORAGE=/srv/models")
	c.wantFailure("list", 2, "want s3://BUCKET")
}
