//go:build cgo

package endtoend

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
)

// TestCrashReplicas ends one of two replicas with SIGKILL, each in turn, while a client
// works with it and others with its neighbour. The neighbour serves them all along, knows
// all that was acknowledged, and lets the same verb, run again, finish.
func TestCrashReplicas(t *testing.T) {
	t.Parallel()
	newCrashServed(t, 2, pgtest.New(t).URL("postgres")).killAll()
}

// neighbourly is how often a neighbour comes: always there, and no test of endurance.
const neighbourly = 20 * time.Millisecond

// neighbours push to the replica that stands by, and read from it, until the function is
// called that this gives.
func (c *crashServed) neighbours() (stop func()) {
	if c.standby == nil {
		return func() {}
	}
	var done sync.WaitGroup
	ctx, cancel := context.WithCancel(c.T.Context())
	for n := range 2 {
		done.Go(func() {
			again := time.NewTicker(neighbourly)
			defer again.Stop()
			for ; ; <-again.C {
				answers, err := c.visit(context.WithoutCancel(ctx), c.standby.URL, n)
				if err != nil {
					c.T.Errorf("a neighbour, after %d answers: %v", answers, err)
				}
				if ctx.Err() != nil || err != nil {
					return
				}
			}
		})
	}
	return func() {
		cancel()
		done.Wait()
	}
}

// visit asks a replica for heads, pushes a blob and looks for it. It gives how many answers
// it got.
func (c *crashServed) visit(ctx context.Context, url string, n int) (answers int, err error) {
	blob := rand.Text()
	path := fmt.Sprintf("%s/v2/staging/neighbour%d/blobs/", url, n)
	for _, ask := range []struct{ method, url, body string }{
		{http.MethodGet, url + "/api/v1/heads?environment=prod", ""},
		{http.MethodPost, path + "uploads/?digest=" + digest.FromString(blob).String(), blob},
		{http.MethodGet, path + digest.FromString(blob).String(), ""},
	} {
		request, err := http.NewRequestWithContext(ctx, ask.method, ask.url, strings.NewReader(ask.body))
		if err != nil {
			return answers, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return answers, err
		}
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode/100 != 2 {
			return answers, fmt.Errorf("%s %s: %s (%w)", ask.method, ask.url, response.Status, err)
		}
		answers++
	}
	return answers, nil
}
