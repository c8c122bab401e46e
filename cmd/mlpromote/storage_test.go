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

// wantFailure wants a verb to end with an exit code and to say why.
func (c *crash) wantFailure(verb string, code int, says ...string) {
	c.t.Helper()
	cmd := c.command(verb)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != code {
		c.t.Errorf("mlpromote %s: got %v, want exit code %d\n%s%s", verb, err, code, out, stderr.Bytes())
	}
	for _, part := range says {
		if !strings.Contains(stderr.String(), part) {
			c.t.Errorf("mlpromote %s says %q, want %q in it", verb, stderr.String(), part)
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
