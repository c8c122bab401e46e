package serving

import (
	"context"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// checkpointPoll is how often a service looks whether a checkpoint is due.
const checkpointPoll = 10 * time.Second

// makeCheckpoints makes a checkpoint whenever enough events have come since the last one, until ctx
// ends. Why it cannot is told once, until that changes.
func (sv *Service) makeCheckpoints(ctx context.Context) {
	if sv.config.checkpointEvents == 0 {
		return
	}
	ticker := time.NewTicker(checkpointPoll)
	defer ticker.Stop()
	for told := ""; ; {
		size, err := sv.points.Every(ctx, int64(sv.config.checkpointEvents))
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && err.Error() != told:
			told = err.Error()
			sv.logger.ErrorContext(ctx, "no checkpoint of the history was made", "error", err, "hint", strings.Join(registry.Hints(err), "; "))
		case err == nil:
			told = ""
		}
		if err == nil && size > 0 {
			sv.logger.InfoContext(ctx, "made a checkpoint of the history", "events", size)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
