//go:build cgo

package endtoend

import (
	"net/http"
	"regexp"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
)

// TestCollectReplicas lets one of two replicas collect, and the other when that is gone.
func TestCollectReplicas(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	database := "MLPROMOTE_DATABASE=" + pgtest.Database(t)
	var replicas []*programtest.Service
	for range 2 {
		s := programtest.NewService(t, programtest.Program(t), root, database)
		s.Flags = []string{"--gc-interval", "1s"}
		s.MustStart(t)
		replicas = append(replicas, s)
	}
	collecting := -1
	programtest.Eventually(t, "a replica collects twice", func() bool {
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
	replicas[collecting].Kill()
	programtest.Eventually(t, "the other replica collects", func() bool { return collections(t, other) > 0 })
}

var collectionsDone = regexp.MustCompile(`mlpromote_gc_runs_total\{result="success"\} ([0-9]+)\n`)

// collections is how often a replica has collected; 9 stands for more.
func collections(t *testing.T, s *programtest.Service) int {
	t.Helper()
	_, metrics := programtest.Send(t, programtest.Fresh(), http.MethodGet, s.URL+"/metrics")
	m := collectionsDone.FindSubmatch(metrics)
	switch {
	case m == nil:
		return 0
	case len(m[1]) > 1:
		return 9
	}
	return int(m[1][0] - '0')
}
