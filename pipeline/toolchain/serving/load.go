package serving

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// loop is what all cases of a shard under load share.
type loop struct {
	engine *engine
	reader reader
	// clients is how many requests are under way at most. every is the time between the beginnings of two requests; 0: a client sends its
	// next one when the last is answered.
	clients int
	every   time.Duration
}

// answer is one under load.
type answer struct {
	took    time.Duration
	outputs []tensor.Tensor
	err     error
}

// underLoad runs all cases with several clients, in rounds, and writes the outputs of the first round.
func underLoad(ctx context.Context, r driverproc.Request, e *engine, id string, load toolchain.ServerLoad, shards []*caserun.Shard, rate float64) (toolchain.EngineResult, error) {
	l := &loop{engine: e, clients: load.Clients}
	l.reader.config = e.config
	if load.Share > 0 && rate > 0 {
		l.every = time.Duration(float64(time.Second) / (rate * load.Share))
	}
	result := toolchain.EngineResult{ID: id, TimingsNS: []int64{}}
	before, err := e.server.queued(ctx)
	if err != nil {
		return result, err
	}
	writer, begin := caserun.NewWriter(filepath.Join(r.Run.OutputsDir, id), id, names(e.config.Outputs)), time.Now()
	for round := range max(r.Run.Rounds, 1) {
		for _, s := range shards {
			answers := l.shard(ctx, s)
			if err := ctx.Err(); err != nil {
				return result, err
			}
			if c := slices.IndexFunc(answers, func(a answer) bool { return a.err != nil }); c >= 0 {
				return result, caserun.InCase(answers[c].err, id, s, int64(c))
			}
			for _, a := range answers {
				result.TimingsNS = append(result.TimingsNS, a.took.Nanoseconds())
				if round > 0 {
					continue
				}
				if err := writer.Append(s, a.outputs); err != nil {
					return result, err
				}
			}
		}
	}
	result.ElapsedNS = max(time.Since(begin), 1).Nanoseconds()
	after, err := e.server.queued(ctx)
	if n := after.count - before.count; err == nil && n > 0 {
		result.QueueNS = ((after.total - before.total) / time.Duration(n)).Nanoseconds()
	}
	return result, err
}

// shard runs all cases of a shard, or those before one that fails and some more. With a fixed rate, the time of a request counts from when it was due: a server that is late does not
// get fewer requests for that.
func (l *loop) shard(ctx context.Context, s *caserun.Shard) []answer {
	answers := make([]answer, s.Count)
	work := make(chan int64)
	begin := time.Now()
	var clients sync.WaitGroup
	var failed atomic.Bool
	for range l.clients {
		clients.Go(func() {
			for c := range work {
				answers[c] = l.one(ctx, s, c, begin.Add(time.Duration(c)*l.every))
				if answers[c].err != nil {
					failed.Store(true)
				}
			}
		})
	}
	for c := range s.Count {
		if failed.Load() {
			break // one wrong answer is enough, and each further one can take its whole time
		}
		if l.every > 0 && !sleepUntil(ctx, begin.Add(time.Duration(c)*l.every)) {
			break
		}
		work <- c
	}
	close(work)
	clients.Wait()
	return answers
}

// one sends a case that was due at a time.
func (l *loop) one(ctx context.Context, s *caserun.Shard, c int64, due time.Time) answer {
	if err := ctx.Err(); err != nil {
		return answer{err: err}
	}
	inputs, batched, err := l.reader.read(s, c)
	if err != nil {
		return answer{err: err}
	}
	took, outputs, err := l.engine.ask(ctx, inputs)
	if l.every > 0 {
		took = max(time.Since(due), 1)
	}
	return answer{took, stacked(outputs, batched), err}
}

// sleepUntil waits for a time, and reports whether ctx lasted until then.
func sleepUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
