package promoting

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
)

// How often promote --wait looks: whether anything happened to the model, first and at most, and whatever happened.
const (
	firstPoll   = time.Second
	longestPoll = 30 * time.Second
	lookAnyway  = 5 * time.Minute // time and restrictions change decisions too, and are no event of the model
)

// waiting is a promotion that waits for evidence.
type waiting struct {
	deadline  time.Time
	again     bool            // the last look wants another one
	told      string          // what stderr says is missing
	model     string          // that the promotion is of
	before    registry.Digest // its newest event before the last look
	overtaken bool            // the destination has another head than at the first look
	// first is what the first look was about; nil before it: the release that was asked for, in place of the head that
	// was there, whatever happens to heads meanwhile.
	first *api.PromoteRequest
}

// headSeen is the head of the destination that a refused promotion would have replaced.
func headSeen(p api.Promotion) *registry.Digest {
	if p.Unchanged {
		return &p.Release
	}
	return &p.Previous
}

// headMoved reports whether the destination has another head than the request replaces.
func headMoved(ctx context.Context, i *wiring.Instance, req api.PromoteRequest) bool {
	heads, err := i.Heads(ctx, req.To, req.Model)
	if err != nil {
		return false
	}
	var now registry.Digest
	if len(heads) > 0 {
		now = heads[0].Release
	}
	return now != *req.Replaces
}

// goesOn reports whether another look can help, and says what is missing if it has not been said.
func (w *waiting) goesOn(ctx context.Context, a *program.App, i *wiring.Instance, p api.Promotion, err error) bool {
	if time.Until(w.deadline) <= 0 || ctx.Err() != nil {
		return false
	}
	missing := awaited(ctx, i, p, err)
	text := strings.Join(missing, "\n")
	if text != "" && text != w.told {
		a.UI.Note("waiting until %s for %s:", w.deadline.UTC().Format(time.DateTime+" MST"), registry.Count(len(missing), "requirement"))
		for _, line := range missing {
			a.UI.Note("  %s", line)
		}
		w.told = text
	}
	w.again = text != ""
	return w.again
}

// awaited says whose evidence is missing, by requirement. It is empty if waiting cannot help: anything else is in the way.
func awaited(ctx context.Context, i *wiring.Instance, p api.Promotion, err error) []string {
	unmet := p.Decision.Unmet()
	if registry.ExitCode(err) != registry.ExitPolicy || len(unmet) == 0 || p.Hold != "" {
		return nil
	}
	against, err := against(ctx, i, p)
	if err != nil {
		return nil
	}
	var missing []string
	for _, r := range unmet {
		role, ok := r.AwaitedRole()
		failed := slices.ContainsFunc(r.Evidence, func(d registry.Digest) bool { return slices.Contains(against, d) })
		if !ok || failed {
			return nil
		}
		missing = append(missing, fmt.Sprintf("%s: %s of %s: %s", role, r.Name, registry.PlainText(r.Subject), registry.PlainText(r.Detail)))
	}
	return missing
}

// against lists the evidence that speaks against a release: a report that failed is not missing.
func against(ctx context.Context, i *wiring.Instance, p api.Promotion) ([]registry.Digest, error) {
	r, err := i.Release(ctx, p.From, p.Model, string(p.Release))
	if err != nil {
		return nil, err
	}
	claims, _, err := i.Claims(ctx, p.From, r)
	var all []registry.Digest
	for _, c := range claims {
		if c.Against() {
			all = append(all, c.Bundle)
		}
	}
	return all, err
}

// newestEvent is the hash of the newest event of a model; empty if it cannot be read now.
func newestEvent(ctx context.Context, i *wiring.Instance, model string) registry.Digest {
	events, err := i.History(ctx, history.HistoryQuery{Model: model, Descending: true, Limit: 1})
	if err != nil || len(events) == 0 {
		return ""
	}
	return events[0].Hash
}

// untilEvent waits until the model has another newest event, and no longer than lookAnyway and the deadline. Pauses double.
// Errors: those of ctx.
func untilEvent(ctx context.Context, a *program.App, w *waiting) error {
	end := time.Now().Add(lookAnyway)
	if w.deadline.Before(end) {
		end = w.deadline
	}
	for pause := firstPoll; ; pause = min(2*pause, longestPoll) {
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		timer := time.NewTimer(min(pause, left))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		var now registry.Digest
		err := a.With(ctx, func(i *wiring.Instance) error { now = newestEvent(ctx, i, w.model); return nil })
		if err == nil && now != "" && now != w.before {
			return nil
		}
	}
}
