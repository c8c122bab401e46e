package pipeline

import (
	"context"
	"fmt"
	"time"

	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/registry"
)

const (
	// extraTime is what all runs of an engine beyond its cases may take together: without its load
	// profile, and for consistency. Each is planned to take far less; one that does not scale as
	// foreseen is stopped, and what has not begun then is named as not run.
	extraTime = time.Minute
	// extraLoads is for how many processes there is also the time that the engine took to load.
	extraLoads = 5
)

// extra is the time of the extra runs of one engine.
type extra struct {
	total, left time.Duration
	now         registry.Clock
}

// extra begins the extra runs of an engine.
func (v verification) extra(id string, outputs runOutputs) *extra {
	total := extraTime
	if v.p.extraTime != 0 {
		total = v.p.extraTime
	}
	for _, e := range outputs.engines {
		if e.ID == id {
			total += extraLoads * time.Duration(e.LoadNS)
		}
	}
	return &extra{total, total, v.p.now}
}

// do does a run in what is left of the time. Errors: [consistency.ErrNoTime] where nothing is.
func (e *extra) do(ctx context.Context, run *engineRun, dir string) error {
	if e.left <= 0 {
		return registry.Errorf(registry.CodeUnavailable, "%w of the %s for runs of an engine beyond its cases", consistency.ErrNoTime, e.said())
	}
	run.job.Budget.Time = e.left
	began := e.now()
	_, err := run.do(ctx, dir)
	e.left -= e.now().Sub(began)
	return err
}

func (e *extra) said() string { return fmt.Sprintf("%.0f s", e.total.Seconds()) }
