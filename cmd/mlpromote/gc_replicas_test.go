//go:build cgo

package main

import (
	"net/http"
	"path/filepath"
	"regexp"
	"testing"

	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
)

// TestCollectReplicas lets one of two replicas collect, and the other when that is gone.
func TestCollectReplicas(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	env := append(environment(root, testCache(t)), "MLPROMOTE_DATABASE="+pgtest.Database(t))
	var replicas []*served
	for range 2 {
		s := &served{program: fastProgram(t), dir: filepath.Join(root, "served"), env: env, flags: []string{"--gc-interval", "1s"}}
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.kill)
		replicas = append(replicas, s)
	}
	collecting := -1
	eventually(t, "a replica collects twice", func() bool {
		for n, s := range replicas {
			if collections(t, s) >= 2 {
				collecting = n
			}
		}
		return collecting >= 0
	})
	other := replicas[1-collecting]
	if n := collections(t, other); n != 0 {
		t.Errorf("the other replica collected %d times", n)
	}
	replicas[collecting].kill()
	eventually(t, "the other replica collects", func() bool { return collections(t, other) > 0 })
}

var collectionsDone = regexp.MustCompile(`mlpromote_gc_runs_total\{result="done"\} ([0-9]+)\n`)

// collections is how often a replica has collected; 9 stands for more.
func collections(t *testing.T, s *served) int {
	t.Helper()
	_, metrics := send(t, fresh(), http.MethodGet, s.url+"/metrics")
	m := collectionsDone.FindSubmatch(metrics)
	switch {
	case m == nil:
		return 0
	case len(m[1]) > 1:
		return 9
	}
	return int(m[1][0] - '0')
}
