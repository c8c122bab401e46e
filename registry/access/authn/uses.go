package authn

import (
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry/storage"
)

// usesEvery is the minimum time between two records of the use of a token, so that not every
// request writes.
const usesEvery = time.Hour

// uses is when this replica last recorded the use of tokens, by ID.
type uses struct {
	mu sync.Mutex
	of map[string]time.Time
}

// due reports whether the use of a token must be recorded now. Of concurrent callers only one
// gets true.
func (u *uses) due(t storage.Token, now time.Time) bool {
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
