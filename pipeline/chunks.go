package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

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
func (v verification) chunked(c candidate) bool {
	return c.model.size()*int64(v.cases.set.Count) >= cmp.Or(v.p.ChunkFrom, chunkedFrom)
}

// chunkRun is one engine on its way through the cases.
type chunkRun struct {
	v       verification
	c       candidate
	driver  toolchain.Driver
	dir     string // below it the outputs come to lie
	scratch string
	parts   map[string][]rowsOf // by shard: the outputs of its cases, in order
	result  toolchain.EngineResult
	ran     int // cases, in this or an earlier verification
	earlier int // of them, those of an earlier one
	held    []string
}

// inChunks runs a candidate on all cases, chunk by chunk, without those that memory has.
// What a chunk takes follows from the results of those before it, which are remembered
// with them: so all verifications cut alike.
func (v verification) inChunks(ctx context.Context, c candidate, memory unfinished, dir string) (*chunkRun, error) {
	r := &chunkRun{
		v: v, c: c, driver: memory.driver(c.tool.Timing), dir: filepath.Join(dir, "outputs", c.id),
		scratch: filepath.Join(v.scratch, "chunks-"+c.id),
		parts:   make(map[string][]rowsOf), result: toolchain.EngineResult{ID: c.id},
	}
	for size := firstChunk; r.ran < v.cases.set.Count; {
		took, err := r.chunk(ctx, piecesOf(v.cases.set.Shards, r.ran, size))
		if err != nil {
			return nil, r.broken(err)
		}
		size = nextChunk(took)
	}
	return r, os.RemoveAll(r.scratch)
}

// broken says what is kept.
func (r *chunkRun) broken(err error) error {
	if r.v.p.Unfinished == "" || r.ran == 0 {
		return err
	}
	return registry.WithHint(err, "%s had run %d of %d cases: verify again on this machine to go on from there",
		r.c.engine.Label(), r.ran, r.v.cases.set.Count)
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
func (r *chunkRun) chunk(ctx context.Context, pieces []caseRange) (toolchain.EngineResult, error) {
	dir := filepath.Join(r.scratch, fmt.Sprintf("from-%09d", r.ran))
	run := r.c.tool.run(toolchain.RunOptions{Shares: r.ran == 0})
	run.tool.Timing, run.job.Machine = r.driver, machine(r.v.node)
	for _, p := range pieces {
		input, err := p.input(r.v.cases, filepath.Join(dir, "cases"))
		if err != nil {
			return toolchain.EngineResult{}, err
		}
		run.job.Inputs = append(run.job.Inputs, input)
	}
	run.addCandidate(r.c)
	results, err := run.do(ctx, filepath.Join(dir, "out"))
	if err != nil && r.ran > 0 && strings.Contains(err.Error(), ": case ") {
		err = registry.WithHint(err, "the cases of this message are counted from case %d", r.ran)
	}
	if err != nil {
		return toolchain.EngineResult{}, errors.Join(err, ctx.Err())
	}
	for _, p := range pieces {
		r.ran += p.end - p.first
		if run.outcome.Cached {
			r.earlier += p.end - p.first
		}
		if err := r.took(p, filepath.Join(dir, "out", "outputs", r.c.id, filepath.FromSlash(p.shard.File))); err != nil {
			return toolchain.EngineResult{}, err
		}
	}
	r.held = append(r.held, run.held...)
	if r.result.LoadNS == 0 {
		r.result.LoadNS, r.result.Providers = results[0].LoadNS, results[0].Providers
	}
	r.result.TimingsNS = append(r.result.TimingsNS, results[0].TimingsNS...)
	return results[0], os.RemoveAll(filepath.Join(dir, "cases"))
}

// took takes the outputs of a range of cases, and puts a shard together when all its pieces are there.
func (r *chunkRun) took(p caseRange, outputs string) error {
	name := p.shard.File
	count := int64(p.end - p.first)
	r.parts[name] = append(r.parts[name], rowsOf{outputs, 0, count, count})
	if p.end < p.shard.Count {
		return nil
	}
	to := filepath.Join(r.dir, filepath.FromSlash(name))
	if p.first > 0 {
		return writeRows(to, r.parts[name])
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	return os.Rename(outputs, to)
}
