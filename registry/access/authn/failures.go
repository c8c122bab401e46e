package authn

import (
	"crypto/sha256"
	"net/http"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/ratelimit"
)

// Rate limits the failed credentials per address. The zero Rate means no limit.
type Rate = ratelimit.Rate

// maxWelcome is how many valid credentials are remembered.
const maxWelcome = 10_000

// failures counts the invalid credentials per address. An address with too many must wait, even
// with valid credentials; otherwise it could go on guessing. Several clients may share an
// address, so clients with a recently valid credential are not affected. A nil failures does
// not limit anyone.
type failures struct {
	limiter *ratelimit.Limiter
	welcome *lru.Cache[[sha256.Size]byte, struct{}] // hashes of valid credentials
}

func newFailures(r Rate) *failures {
	limiter := ratelimit.New(r)
	if limiter == nil {
		return nil
	}
	welcome, _ := lru.New[[sha256.Size]byte, struct{}](maxWelcome) // the size is a constant above 0
	return &failures{limiter, welcome}
}

// tooMany is the error for an address that must wait.
type tooMany struct {
	error
	wait time.Duration
}

func (t tooMany) Unwrap() error { return t.error }

// allow refuses a request whose address must wait.
func (f *failures) allow(r *http.Request, secret string, now time.Time) error {
	if f == nil {
		return nil
	}
	wait := f.limiter.Wait(ratelimit.Address(r), now)
	if wait == 0 || f.welcome.Contains(sha256.Sum256([]byte(secret))) {
		return nil
	}
	return tooMany{
		registry.Errorf(registry.CodeUnavailable, "too many invalid credentials came from your address: wait and try again"),
		wait,
	}
}

// tell records whether a credential was valid.
func (f *failures) tell(r *http.Request, secret string, err error, now time.Time) {
	switch {
	case f == nil:
	case err == nil:
		f.welcome.Add(sha256.Sum256([]byte(secret)), struct{}{})
	case registry.CodeOf(err) == registry.CodeUnauthenticated:
		f.limiter.Take(ratelimit.Address(r), now)
	}
}
