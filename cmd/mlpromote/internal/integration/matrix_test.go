package integration

import (
	"fmt"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
)

// The shards together have each target once, in order, and none has more jobs than a matrix may have.
func TestMatrix(t *testing.T) {
	t.Parallel()
	for _, targets := range []int{1, 2, 256, 257, 600} {
		for _, n := range []int{1, 2, 3, 7} {
			t.Run(fmt.Sprintf("%d targets in %d shards", targets, n), func(t *testing.T) {
				t.Parallel()
				list := make([]spec.Target, targets)
				for i := range list {
					list[i] = spec.Target{Name: fmt.Sprint("t", i)}
				}
				list[0].Runner = "gpu-l4"
				var got []matrixJob
				for k := 1; k <= n; k++ {
					m, err := matrixOf(list, shard{k, n}, "ubuntu-latest")
					if targets > n*maxJobs {
						if !registry.HasCode(err, registry.CodeInvalid) {
							t.Fatalf("shard %d/%d: error %v, want CodeInvalid", k, n, err)
						}
						return
					}
					if err != nil || m.Include == nil || len(m.Include) > maxJobs {
						t.Fatalf("shard %d/%d: %d jobs, error %v; want at most %d", k, n, len(m.Include), err, maxJobs)
					}
					got = append(got, m.Include...)
				}
				if len(got) != targets || got[0] != (matrixJob{"t0", "gpu-l4"}) {
					t.Fatalf("%d jobs, the first %+v; want %d and t0 on gpu-l4", len(got), got[0], targets)
				}
				for i, job := range got[1:] {
					if job != (matrixJob{list[i+1].Name, "ubuntu-latest"}) {
						t.Errorf("job %d is %+v, want %s", i+1, job, list[i+1].Name)
					}
				}
			})
		}
	}
	for _, text := range []string{"", "1", "0/2", "3/2", "1/0", "-1/2", "a/b", "1/2/3"} {
		if s, err := parseShard(text); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("shard %q: %+v, error %v; want CodeInvalid", text, s, err)
		}
	}
}
