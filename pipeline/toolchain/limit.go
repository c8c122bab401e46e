package toolchain

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
)

// Cost is what a step takes of a machine while it runs. The zero Cost is all cores, since
// a tool that says nothing may use what there is, and no memory to speak of.
type Cost struct {
	Cores       int   // 0 means all
	MemoryBytes int64 // beside what the model takes
	ModelFactor int64 // how many times the size of the model's files it holds in memory
	GPUs        int
}

// Budget is what a step may take at most, and so what is kept free for it. Zero fields say
// nothing. It is not part of a key: a step that ends within its budget makes the same.
type Budget struct {
	Time        time.Duration // from start to end
	Cores       int
	MemoryBytes int64 // private writable memory of a process
	GPUs        int
}

// ResourcePool is what a machine has for steps. Every step that shares it takes its cost of it,
// waits until that is free, and gives it back; one that costs more than there is runs alone.
type ResourcePool struct {
	has                 Cost
	cores, memory, gpus *semaphore.Weighted
}

// NewResourcePool is the room of a machine with this many cores and devices, and this much
// memory; less than one core means one.
func NewResourcePool(cores int, memoryBytes int64, gpus int) *ResourcePool {
	has := Cost{Cores: max(cores, 1), MemoryBytes: max(memoryBytes, 0), GPUs: max(gpus, 0)}
	return &ResourcePool{has, semaphore.NewWeighted(int64(has.Cores)),
		semaphore.NewWeighted(has.MemoryBytes), semaphore.NewWeighted(int64(has.GPUs))}
}

// take waits until there is room for a cost. Kinds are taken in one order, so that no two
// wait for each other.
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

// cost is what a job takes: its budget, where it says something, and else what the tool
// declares; at most what there is.
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

// Limit is driver with a place in a room: a job waits until there is room for what it
// costs.
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
