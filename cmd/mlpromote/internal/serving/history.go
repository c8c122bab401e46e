package serving

import (
	"context"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// historyInterval is how often a service compares heads with the history.
const historyInterval = time.Hour

// watchHistory compares heads with the history, now and again, until ctx ends. What it
// finds keeps promotions from a model, and never the service from answering: a restored
// backup has to come up.
func (sv *Service) watchHistory(ctx context.Context) {
	ticker := time.NewTicker(historyInterval)
	defer ticker.Stop()
	for {
		sv.compareHistory(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (sv *Service) compareHistory(ctx context.Context) {
	sv.relist(ctx)
	faults, err := sv.keeper.InForce().HeadFaults(ctx)
	if err != nil {
		if ctx.Err() == nil {
			sv.logger.ErrorContext(ctx, "heads could not be compared with the history", "error", err)
		}
		return
	}
	contradicted := sv.points.Check(ctx)
	if registry.HasCode(contradicted, registry.CodeTrust) {
		sv.telemetry.HistoryFaults(len(faults) + 1)
	} else {
		sv.telemetry.HistoryFaults(len(faults))
	}
	if contradicted != nil && ctx.Err() == nil {
		sv.logger.ErrorContext(ctx, "the history could not be proven against its checkpoints", "error", contradicted)
	}
	for _, f := range faults {
		sv.logger.ErrorContext(ctx, "the history does not explain the present state", "environment", f.Environment, "model", f.Model,
			"detail", f.Detail, "hint", strings.Join(registry.Hints(f.Err()), "; "))
	}
}

// relist lists adverse evidence again that repositories lost.
func (sv *Service) relist(ctx context.Context) {
	n, err := sv.keeper.InForce().Service.Relist(ctx)
	sv.telemetry.Relisted(n)
	if n > 0 {
		sv.logger.WarnContext(ctx, "repositories lost evidence that counts against releases, and it is listed again", "pieces", n,
			"hint", "others may write to the registry of an environment, or two clients wrote the same list: docs/how-to/recall.md")
	}
	if err != nil && ctx.Err() == nil {
		sv.logger.WarnContext(ctx, "evidence could not be compared with what repositories list, and counts all the same", "error", err)
	}
}
