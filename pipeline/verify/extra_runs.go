package verify

import (
	"context"
	"fmt"
	"time"

	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	// extraTime is what the runs of an engine beyond its cases may take: one without its load profile,
	// and all for consistency together. Each is planned to take far less; one that does not scale as
	// foreseen is stopped, and what has not begun then is named as not run.
	extraTime = time.Minute
	// extraLoads is for how many processes there is also the time that the engine took to load.
	extraLoads = 5
	// leastTime is below what no run begins.
	leastTime = 10 * time.Millisecond
)

// extra is the time of extra runs of one engine.
type extra struct {
	total, left time.Duration
	load        time.Duration // that each run begins with
	parts       int           // of these what is left has, a run may take one
	now         storage.Clock
	late        bool // a run did not begin or did not end for want of time
}

// newExtra begins extra runs of an engine. Each may take a part of what is left, so that one that hangs
// leaves time for others. How long the reference model loads is not known: as long as the slowest.
func newExtra(v Session, id string, outputs RunOutputs, parts int) *extra {
	e := &extra{total: extraTime, parts: parts, now: v.Env.Time}
	if v.Env.ExtraTime != 0 {
		e.total = v.Env.ExtraTime
	}
	for _, r := range outputs.Engines {
		if r.ID == id || id == run.ReferenceID {
			e.load = max(e.load, time.Duration(r.LoadNS))
		}
	}
	e.total += extraLoads * e.load
	e.left = e.total
	return e
}

// more adds to the time.
func (e *extra) more(d time.Duration) { e.total, e.left = e.total+d, e.left+d }

// do does a run in its part of what is left of the time. Errors: [consistency.ErrNoTime] where that is
// too little to load, and [consistency.ErrStopped] for a run that took it all, both CodeUnavailable.
func (e *extra) do(ctx context.Context, run *run.EngineRun, dir string) error {
	part := e.left / time.Duration(e.parts)
	if part < max(leastTime, e.load) {
		e.late = true
		return registry.Errorf(registry.CodeUnavailable, "%w of the %s for runs of an engine beyond its cases", consistency.ErrNoTime, e.said())
	}
	run.Job.Budget.Time = part
	began := e.now()
	_, err := run.Do(ctx, dir)
	took := e.now().Sub(began)
	e.left -= took
	if took >= part && registry.HasCode(err, registry.CodeUnavailable) && ctx.Err() == nil {
		e.late = true
		return registry.Errorf(registry.CodeUnavailable, "%w, %.1f s: %w", consistency.ErrStopped, part.Seconds(), err)
	}
	return err
}

func (e *extra) said() string { return fmt.Sprintf("%.0f s", e.total.Seconds()) }
