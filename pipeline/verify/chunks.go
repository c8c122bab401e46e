package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// How the cases of a large model are cut into chunks, each of which is a process and is
// remembered until the verification is done. What is lost when it breaks off is a chunk.
const (
	// chunkedFrom is the work from which it is worth a process of its own: bytes of the
	// model times cases, since most models read every weight for each case.
	chunkedFrom = 8 << 30
	// The first chunk shows what a case costs; so it has few.
	firstChunk = 16
	// The others take this long, and this many times what loading the model takes.
	chunkTime  = 30 * time.Second
	chunkLoads = 20
)

// chunked reports whether a candidate is run chunk by chunk.
func chunked(v Session, c run.Candidate) bool {
	return c.Model.Size()*int64(v.Cases.Set.Count) >= cmp.Or(v.Env.ChunkFrom, chunkedFrom)
}

// chunkRun is one engine on its way through the cases.
type chunkRun struct {
	v       Session
	c       run.Candidate
	driver  toolchain.Driver
	dir     string // below it the outputs come to lie
	scratch string
	parts   map[string][]run.RowsOf // by shard: the outputs of its cases, in order
	result  toolchain.EngineResult
	ran     int // cases, in this or an earlier verification
	earlier int // of them, those of an earlier one
	held    []string
}

// inChunks runs a candidate on all cases, chunk by chunk, without those that memory has.
// What a chunk takes follows from the results of those before it, which are remembered
// with them: so all verifications cut alike.
func inChunks(ctx context.Context, v Session, c run.Candidate, memory unfinished, dir string) (*chunkRun, error) {
	r := &chunkRun{
		v: v, c: c, driver: memory.driver(c.Tool.Timing), dir: filepath.Join(dir, "outputs", c.ID),
		scratch: filepath.Join(v.Scratch, "chunks-"+c.ID),
		parts:   make(map[string][]run.RowsOf), result: toolchain.EngineResult{ID: c.ID},
	}
	for size := firstChunk; r.ran < v.Cases.Set.Count; {
		took, err := r.chunk(ctx, run.PiecesOf(v.Cases.Set.Shards, r.ran, size))
		if err != nil {
			return nil, r.broken(err)
		}
		size = nextChunk(took)
	}
	return r, os.RemoveAll(r.scratch)
}

// broken says what is kept.
func (r *chunkRun) broken(err error) error {
	if r.v.Env.Unfinished == "" || r.ran == 0 {
		return err
	}
	return registry.WithHint(err, "%s had run %d of %d cases: verify again on this machine to go on from there",
		r.c.Engine.Label(), r.ran, r.v.Cases.Set.Count)
}

// nextChunk is the number of cases after a chunk that came out like this.
func nextChunk(last toolchain.EngineResult) int {
	var sum int64
	for _, t := range last.TimingsNS {
		sum += t
	}
	one := max(sum/int64(max(len(last.TimingsNS), 1)), 1)
	return int(max(max(int64(chunkTime), chunkLoads*last.LoadNS)/one, 1))
}

// chunk runs pieces of shards in one process.
func (r *chunkRun) chunk(ctx context.Context, pieces []run.CaseRange) (toolchain.EngineResult, error) {
	dir := filepath.Join(r.scratch, fmt.Sprintf("from-%09d", r.ran))
	execution := r.c.Tool.Run(toolchain.RunOptions{Shares: r.ran == 0})
	execution.Tool.Timing, execution.Job.Machine = r.driver, run.Machine(r.v.Node)
	for _, p := range pieces {
		input, err := p.Input(r.v.Cases, filepath.Join(dir, "cases"))
		if err != nil {
			return toolchain.EngineResult{}, err
		}
		execution.Job.Inputs = append(execution.Job.Inputs, input)
	}
	execution.AddCandidate(r.c)
	results, err := execution.Do(ctx, filepath.Join(dir, "out"))
	if failed := new(toolchain.Failure); errors.As(err, &failed) && failed.Case != nil && r.ran > 0 {
		err = registry.WithHint(err, "the cases of this message are counted from case %d: it is case %d of the release", r.ran, r.ran+*failed.Case)
	}
	if err != nil {
		return toolchain.EngineResult{}, errors.Join(err, ctx.Err())
	}
	for _, p := range pieces {
		r.ran += p.End - p.First
		if execution.Outcome.Cached {
			r.earlier += p.End - p.First
		}
		if err := r.took(p, filepath.Join(dir, "out", "outputs", r.c.ID, filepath.FromSlash(p.Shard.File))); err != nil {
			return toolchain.EngineResult{}, err
		}
	}
	r.held = append(r.held, execution.Held...)
	if r.result.LoadNS == 0 {
		r.result.LoadNS, r.result.Providers = results[0].LoadNS, results[0].Providers
	}
	r.result.TimingsNS = append(r.result.TimingsNS, results[0].TimingsNS...)
	return results[0], os.RemoveAll(filepath.Join(dir, "cases"))
}

// took takes the outputs of a range of cases, and puts a shard together when all its pieces are there.
func (r *chunkRun) took(p run.CaseRange, outputs string) error {
	name := p.Shard.File
	count := int64(p.End - p.First)
	r.parts[name] = append(r.parts[name], run.RowsOf{Path: outputs, First: 0, End: count, Count: count})
	if p.End < p.Shard.Count {
		return nil
	}
	to := filepath.Join(r.dir, filepath.FromSlash(name))
	if p.First > 0 {
		return run.WriteRows(to, r.parts[name])
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	return os.Rename(outputs, to)
}
