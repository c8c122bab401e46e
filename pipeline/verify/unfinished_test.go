package verify

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// What a verification that broke off left is used by one process at a time, begins when the first did, and is forgotten in time.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	now := time.Now()
	env := &run.Env{Unfinished: filepath.Join(t.TempDir(), "[unfinished"), Now: func() time.Time { return now }}
	v := Session{Env: env, Subject: Subject{Began: Beginning{StartedOn: now.UTC(), History: "sha256:1"}}}
	first, err := openUnfinished(v)
	if err != nil || first.dir == "" || first.began.History != "sha256:1" {
		t.Fatalf("first %+v, error %v; want a folder", first, err)
	}
	if second, err := openUnfinished(v); err != nil || second.dir != "" {
		t.Errorf("while another works: %+v, error %v; want nothing", second, err)
	}
	if err := first.close(false); err != nil {
		t.Fatal(err)
	}
	v.Began.History = "sha256:2"
	again, err := openUnfinished(v)
	if err != nil || again.dir != first.dir || again.began.History != "sha256:1" {
		t.Errorf("again %+v, error %v; want the same folder, begun as the first", again, err)
	}
	if err := again.close(true); err != nil {
		t.Fatal(err)
	}
	finished, err := openUnfinished(v)
	if err != nil || finished.began.History != "sha256:2" {
		t.Errorf("after one that finished: %+v, error %v; want a beginning of its own", finished, err)
	}
	if err := finished.close(false); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(finished.dir, "began.json"), []byte("no JSON"), 0o600); err != nil {
		t.Fatal(err)
	}
	if damaged, err := openUnfinished(v); err != nil || damaged.dir != "" {
		t.Errorf("a damaged one: %+v, error %v; want nothing", damaged, err)
	}
	now = now.Add(unfinishedFor - time.Hour)
	if forgetOld(v); !isThere(finished.dir) {
		t.Error("it is forgotten an hour before its time")
	}
	now = now.Add(2 * time.Hour)
	if forgetOld(v); isThere(finished.dir) {
		t.Error("it is not forgotten an hour after its time")
	}
	v.Began.StartedOn = now.UTC()
	began, err := openUnfinished(v)
	if err != nil || began.dir == "" || began.close(false) != nil {
		t.Fatalf("%+v, error %v; want a folder", began, err)
	}
	held, err := toolchain.TryLockFile(filepath.Join(began.dir, "running"), true)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(began.dir, "running"), now.Add(2*unfinishedFor), now.Add(2*unfinishedFor)); err != nil {
		t.Fatal(err)
	}
	held()
	now = now.Add(unfinishedFor)
	if old, err := openUnfinished(v); err != nil || old.dir != "" {
		t.Errorf("one that is too old and was not removed: %+v, error %v; want nothing", old, err)
	}
	v.Began.StartedOn = now.UTC()
	for name, shared := range map[string]func(dir string) error{
		"others can write to it": func(dir string) error { return os.Chmod(dir, 0o777) },
		"a link": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+"-moved"), os.Symlink(dir+"-moved", dir))
		},
		"a file": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) },
	} {
		env.Unfinished = filepath.Join(t.TempDir(), "unfinished")
		own, err := openUnfinished(v)
		if err != nil || own.dir == "" || own.close(false) != nil {
			t.Fatalf("%+v, error %v; want a folder", own, err)
		}
		if err := shared(env.Unfinished); err != nil {
			t.Fatal(err)
		}
		if found, err := openUnfinished(v); err != nil || found.dir != "" {
			t.Errorf("%s: %+v, error %v; want nothing", name, found, err)
		}
	}
	env.Unfinished = ""
	if none, err := openUnfinished(v); err != nil || none.dir != "" || none.close(true) != nil {
		t.Errorf("without a folder for it: %+v, error %v; want nothing", none, err)
	}
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
