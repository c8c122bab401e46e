package gate

import (
	"context"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

const (
	// usesEvery is how often the use of one token is noted, so that requests do not write.
	usesEvery = time.Hour
	// usesPatience is how long a request waits for that.
	usesPatience = time.Second
)

// uses is when this replica last noted the use of tokens, by ID.
type uses struct {
	mu sync.Mutex
	of map[string]time.Time
}

// due reports whether the use of a token is to be noted now, to one of those who ask.
func (u *uses) due(t registry.Token, now time.Time) bool {
	if now.Sub(t.LastUsed) < usesEvery {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.Sub(u.of[t.ID]) < usesEvery {
		return false
	}
	u.of[t.ID] = now
	return true
}

// used notes that a token let somebody in. That it cannot be noted keeps nobody out.
func (g *Gate) used(ctx context.Context, t registry.Token, now time.Time) {
	if !g.uses.due(t, now) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, usesPatience)
	defer cancel()
	if err := g.Tokens.UseToken(ctx, t.ID, now); err != nil {
		g.Logger.WarnContext(ctx, "cannot note that a token was used", "token", t.Name, "error", err)
	}
}
