package toolchain_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// Of jobs that take so much of a machine, so many run at a time, and all run.
func TestLimit(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	model := []toolchain.Input{{Role: "model", Name: "m", Path: "m", Digest: digest.FromString("m"), Size: gib}}
	for name, c := range map[string]struct {
		cost   toolchain.Cost
		budget toolchain.Budget
		want   int64
	}{
		"a core each":               {toolchain.Cost{Cores: 1}, toolchain.Budget{}, 4},
		"two cores each":            {toolchain.Cost{Cores: 2}, toolchain.Budget{}, 2},
		"three cores each":          {toolchain.Cost{Cores: 3}, toolchain.Budget{}, 1},
		"nothing said":              {toolchain.Cost{}, toolchain.Budget{}, 1},
		"more than there is":        {toolchain.Cost{Cores: 64}, toolchain.Budget{}, 1},
		"memory":                    {toolchain.Cost{Cores: 1, MemoryBytes: 3 * gib}, toolchain.Budget{}, 2},
		"memory for the model":      {toolchain.Cost{Cores: 1, MemoryBytes: gib, ModelFactor: 2}, toolchain.Budget{}, 2},
		"more memory than there is": {toolchain.Cost{Cores: 1, MemoryBytes: 64 * gib}, toolchain.Budget{}, 1},
		"the one device":            {toolchain.Cost{Cores: 1, GPUs: 1}, toolchain.Budget{}, 1},
		"a budget of cores":         {toolchain.Cost{Cores: 4}, toolchain.Budget{Cores: 2}, 2},
		"a budget of memory":        {toolchain.Cost{Cores: 1}, toolchain.Budget{MemoryBytes: 3 * gib}, 2},
		"a budget of devices":       {toolchain.Cost{Cores: 1}, toolchain.Budget{GPUs: 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const jobs = 10
			gate := &gate{entered: make(chan struct{}, jobs), leave: make(chan struct{})}
			limited := toolchain.Limit(gate, toolchain.NewResourcePool(4, 6*gib, 1), c.cost)
			job := toolchain.Job{Inputs: model, Budget: c.budget}
			var group sync.WaitGroup
			for range jobs {
				group.Go(func() {
					if _, err := limited.Do(t.Context(), job, ""); err != nil {
						t.Error(err)
					}
				})
			}
			for range c.want {
				<-gate.entered
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := limited.Do(ctx, job, ""); !errors.Is(err, context.Canceled) {
				t.Errorf("a waiting job whose context ended: error %v", err)
			}
			close(gate.leave)
			group.Wait()
			if most := gate.most.Load(); most != c.want {
				t.Errorf("%d jobs at once, want %d", most, c.want)
			}
		})
	}
}

// gate is a driver whose jobs wait to be let go.
type gate struct {
	echo
	entered   chan struct{}
	leave     chan struct{}
	now, most atomic.Int64
}

func (g *gate) Do(context.Context, toolchain.Job, string) (toolchain.Outcome, error) {
	now := g.now.Add(1)
	for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
	}
	g.entered <- struct{}{}
	<-g.leave
	g.now.Add(-1)
	return toolchain.Outcome{}, nil
}
