package toolchain

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// Cost is how much of a machine a step uses while it runs. The zero Cost is all cores, because
// an unknown tool may use all of them, and no extra memory.
type Cost struct {
	Cores       int   // 0 means all
	MemoryBytes int64 // beside what the model takes
	ModelFactor int64 // memory as a multiple of the size of the model's files
	GPUs        int
}

// ResourcePool has the resources of a machine for steps. A step waits until its cost is
// available, takes it, and returns it at its end. A step that costs more than the pool has runs
// alone.
type ResourcePool struct {
	has                 Cost
	cores, memory, gpus *semaphore.Weighted
}

// NewResourcePool returns the pool of a machine with this many cores and devices, and this much
// memory. Fewer than one core mean one.
func NewResourcePool(cores int, memoryBytes int64, gpus int) *ResourcePool {
	has := Cost{Cores: max(cores, 1), MemoryBytes: max(memoryBytes, 0), GPUs: max(gpus, 0)}
	return &ResourcePool{has, semaphore.NewWeighted(int64(has.Cores)),
		semaphore.NewWeighted(has.MemoryBytes), semaphore.NewWeighted(int64(has.GPUs))}
}

// take waits until a cost is available. It takes the kinds of resources in a fixed order, so
// that two callers cannot deadlock.
func (r *ResourcePool) take(ctx context.Context, c Cost) (give func(), err error) {
	var taken []func()
	give = func() {
		for _, f := range taken {
			f()
		}
	}
	for _, kind := range []struct {
		of *semaphore.Weighted
		n  int64
	}{{r.gpus, int64(c.GPUs)}, {r.memory, c.MemoryBytes}, {r.cores, int64(c.Cores)}} {
		if err := kind.of.Acquire(ctx, kind.n); err != nil {
			give()
			return nil, err
		}
		taken = append(taken, func() { kind.of.Release(kind.n) })
	}
	return give, nil
}

// cost returns the cost of a job: its budget where that is set, otherwise the tool's declared
// cost; at most what the pool has.
func (r *ResourcePool) cost(declared Cost, job Job) Cost {
	var model int64
	for _, in := range job.Inputs {
		if in.Role == RoleModel {
			model += in.Size
		}
	}
	c := Cost{Cores: declared.Cores, MemoryBytes: declared.MemoryBytes + declared.ModelFactor*model, GPUs: declared.GPUs}
	if c.Cores <= 0 {
		c.Cores = r.has.Cores
	}
	if b := job.Budget; b.Cores > 0 {
		c.Cores = b.Cores
	}
	if b := job.Budget; b.MemoryBytes > 0 {
		c.MemoryBytes = b.MemoryBytes
	}
	if b := job.Budget; b.GPUs > 0 {
		c.GPUs = b.GPUs
	}
	return Cost{Cores: min(c.Cores, r.has.Cores),
		MemoryBytes: min(c.MemoryBytes, r.has.MemoryBytes), GPUs: min(c.GPUs, r.has.GPUs)}
}

// Limit wraps a driver so that jobs wait until a pool has the resources for them.
func Limit(driver Driver, room *ResourcePool, cost Cost) Driver { return limited{driver, room, cost} }

type limited struct {
	Driver
	room *ResourcePool
	cost Cost
}

func (l limited) Do(ctx context.Context, job Job, outDir string) (Outcome, error) {
	give, err := l.room.take(ctx, l.room.cost(l.cost, job))
	if err != nil {
		return Outcome{}, err
	}
	defer give()
	return l.Driver.Do(ctx, job, outDir)
}
