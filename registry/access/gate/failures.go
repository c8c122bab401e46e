package gate

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/rates"
)

// Rate is how many credentials that let nobody in an address may send. The zero Rate is no
// limit.
type Rate = rates.Rate

// maxWelcome is how many credentials are known to have let somebody in.
const maxWelcome = 10_000

// failures counts the credentials of each address that let nobody in. An address that sent
// too many waits, also with one that would let it in: else it could go on guessing. Many
// may share an address, so that those whose credential let them in before go on as they did.
// Nil lets everybody try.
type failures struct {
	limiter *rates.Limiter
	welcome *lru.Cache[[sha256.Size]byte, struct{}] // hashes of credentials
}

func newFailures(r Rate) *failures {
	limiter := rates.New(r)
	if limiter == nil {
		return nil
	}
	welcome, _ := lru.New[[sha256.Size]byte, struct{}](maxWelcome) // the size is a constant above 0
	return &failures{limiter, welcome}
}

// tooMany is what an address is told that has to wait.
type tooMany struct {
	error
	wait time.Duration
}

func (t tooMany) Unwrap() error { return t.error }

// allow refuses who has to wait.
func (f *failures) allow(r *http.Request, secret string, now time.Time) error {
	if f == nil {
		return nil
	}
	wait := f.limiter.Wait(rates.Address(r), now)
	if wait == 0 || f.welcome.Contains(sha256.Sum256([]byte(secret))) {
		return nil
	}
	return tooMany{registry.Errorf(registry.CodeUnavailable, "too many credentials came from your address that let nobody in: wait and try again"), wait}
}

// tell takes into account what came of a credential.
func (f *failures) tell(r *http.Request, secret string, err error, now time.Time) {
	switch {
	case f == nil:
	case err == nil:
		f.welcome.Add(sha256.Sum256([]byte(secret)), struct{}{})
	case registry.CodeOf(err) == registry.CodeUnauthenticated:
		f.limiter.Take(rates.Address(r), now)
	}
}

// answerTooMany answers an OCI client that has to wait, and reports whether it has to.
func (g *Gate) answerTooMany(w http.ResponseWriter, err error) bool {
	var late tooMany
	if !errors.As(err, &late) {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", rates.RetryAfter(late.wait))
	refuse(w, http.StatusTooManyRequests, "TOOMANYREQUESTS", err.Error())
	return true
}
