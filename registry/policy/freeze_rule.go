package policy

import (
	"fmt"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// judgeFreeze decides whether the moment of the promotion is outside all freezes.
func judgeFreeze(j judging, req *Requirement) {
	c := j.policy.Promotion
	if c.Replay || c.Head == j.release.Digest && c.Environment != "" {
		req.Met, req.Detail = true, "no head moves"
		return
	}
	if why := c.unknownTime(); why != "" {
		req.Detail = why
		return
	}
	req.Met, req.Detail = true, "no freeze now, and no more to come"
	for _, f := range j.policy.Freeze {
		frozen, change := f.InForce(c.Now)
		switch {
		case frozen:
			req.deny("%s of %s lasts until %s: wait, or go back with mlpromote rollback, which is allowed", f, c.Environment, change.Format(time.RFC3339))
		case !registry.Earlier(req.until, change).Equal(req.until):
			req.until = change
			if req.Met {
				req.Detail = fmt.Sprintf("no freeze now; %s is next, from %s", f.Name, change.Format(time.RFC3339))
			}
		}
	}
}

// unknownTime returns why the time of the promotion is not known, or "". A clock that was turned
// back would end freezes and revive what expired.
func (c PromotionContext) unknownTime() string {
	switch {
	case c.Now.IsZero():
		return "the time of the promotion is not known"
	case registry.ClaimsFuture(c.Newest, c.Now):
		return fmt.Sprintf("the clock here says %s, but the newest event of the history is of %s: set the clock", registry.UTC(c.Now), registry.UTC(c.Newest))
	}
	return ""
}
