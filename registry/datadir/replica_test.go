package datadir_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// A place keeps the marks of replicas.
func TestReplicaPlace(t *testing.T) {
	t.Parallel()
	for name, root := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place, ok := root(t)("content").marks.(storage.ReplicaPlace)
			if !ok {
				t.Fatal("the place keeps no marks of replicas")
			}
			registrytest.TestReplicaPlace(t, place)
		})
	}
}

// replicas are replicas of one catalog, in a bubble of time.
type replicas struct {
	t     *testing.T
	db    *mem.DB
	marks storage.ReplicaMarks
}

// running is a replica until stop is called. kill ends it without a word.
type running struct {
	*datadir.Replica
	stop func()
}

func (r replicas) make(name, dir string) *datadir.Replica {
	return &datadir.Replica{
		Name: name, Marks: r.marks, Place: datadir.Dir{Path: dir}, Clock: r.db, Tell: func(context.Context, error) {},
	}
}

// start lets a replica join and run.
func (r replicas) start(name, dir string) running {
	r.t.Helper()
	replica := r.make(name, dir)
	replica.Join(r.t.Context())
	ctx, cancel := context.WithCancel(r.t.Context())
	var over sync.WaitGroup
	over.Go(func() { replica.Run(ctx) })
	return running{replica, func() { cancel(); over.Wait() }}
}

func (r replicas) want(replica *datadir.Replica, may bool) {
	r.t.Helper()
	err := replica.Check()
	if may && err != nil {
		r.t.Errorf("%s may not write: %v", replica.Name, err)
	}
	if !may {
		wantCode(r.t, err, registry.CodeUnavailable)
	}
}

// copyOfDir copies a directory with everything in it.
func copyOfDir(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	must(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

// inBubble runs a test with replicas and a directory.
func inBubble(t *testing.T, test func(t *testing.T, r replicas, dir string)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db := mem.New()
		db.Now = time.Now
		test(t, replicas{t, db, mem.NewTable[storage.ReplicaMark]()}, dir)
	})
}

// Replicas on one directory all may write, also after long.
func TestReplicasTogether(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r replicas, dir string) {
		began := time.Now()
		one := r.start("one", dir)
		if took := time.Since(began); took != 0 {
			t.Errorf("the first replica joined after %v, want at once", took)
		}
		two := r.start("two", dir)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the second replica joined after %v, want two seconds or less", took)
		}
		for range 10 {
			r.want(one.Replica, true)
			r.want(two.Replica, true)
			time.Sleep(storage.MarkInterval)
		}
		one.stop()
		three := r.start("three", dir)
		r.want(three.Replica, true)
		r.want(two.Replica, true)
		two.stop()
		three.stop()
		if left, err := os.ReadDir(filepath.Join(dir, "replicas")); err != nil || len(left) > 0 {
			t.Errorf("replicas that stopped left %v (%v), want nothing", left, err)
		}
	})
}

// A replica on a copy, however new, writes nothing while another one runs, which goes on.
func TestReplicaOnCopy(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r replicas, dir string) {
		one := r.start("one", dir)
		two := r.start("two", copyOfDir(t, dir))
		for range 10 {
			r.want(one.Replica, true)
			r.want(two.Replica, false)
			time.Sleep(storage.MarkInterval)
		}
		one.stop()
		time.Sleep(2 * time.Second)
		r.want(two.Replica, true)
		two.stop()
	})
}

// A copy that is made again while its replica runs is still a copy.
func TestReplicaOnRefreshedCopy(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r replicas, dir string) {
		one := r.start("one", dir)
		to := copyOfDir(t, dir)
		two := r.start("two", to)
		for range 10 {
			time.Sleep(storage.MarkInterval / 2)
			text, err := os.ReadFile(filepath.Join(dir, "replicas", "one"))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(to, "replicas", "one"), text, 0o600))
			synctest.Wait()
			r.want(two.Replica, false)
			time.Sleep(storage.MarkInterval / 2)
		}
		r.want(one.Replica, true)
		one.stop()
		two.stop()
	})
}

// A replica that ended without a word keeps others on its directory waiting for moments, and
// those on an older copy until its marks have expired.
func TestReplicaLost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r replicas, dir string) {
		old := copyOfDir(t, dir)
		r.make("lost", dir).Join(t.Context())
		began := time.Now()
		stale := r.start("stale", old)
		r.want(stale.Replica, false)
		next := r.start("next", dir)
		r.want(next.Replica, true)
		if took := time.Since(began); took > 4*storage.MarkPatience {
			t.Errorf("the next replica joined after %v", took)
		}
		next.stop()
		time.Sleep(storage.MarkLease)
		r.want(stale.Replica, true)
		stale.stop()
	})
}

// Of two replicas that begin at the same moment on different directories, at most one may write.
func TestReplicasBeginTogether(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r replicas, dir string) {
		elsewhere := copyOfDir(t, dir)
		var both [2]running
		var joining sync.WaitGroup
		for i, at := range []string{dir, elsewhere} {
			joining.Go(func() { both[i] = r.start([]string{"one", "two"}[i], at) })
		}
		joining.Wait()
		for range 20 {
			if both[0].Check() == nil && both[1].Check() == nil {
				t.Error("both may write, on different directories")
			}
			time.Sleep(storage.MarkInterval)
		}
		both[0].stop()
		both[1].stop()
	})
}

// A replica whose marks cannot be renewed stops writing when they expire.
func TestReplicaWithoutMarks(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r replicas, dir string) {
		one := r.start("one", dir)
		folder := filepath.Join(dir, "replicas")
		must(t, os.Rename(folder, folder+".away"))
		must(t, os.WriteFile(folder, nil, 0o600)) // a file where the folder was
		time.Sleep(storage.MarkLease + 2*time.Second)
		r.want(one.Replica, false)
		must(t, os.Remove(folder))
		must(t, os.Rename(folder+".away", folder))
		time.Sleep(2 * time.Second)
		r.want(one.Replica, true)
		one.stop()
	})
}
