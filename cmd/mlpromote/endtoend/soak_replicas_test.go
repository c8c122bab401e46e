//go:build cgo

package endtoend

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/signer/keyfile"
)

const (
	stormRounds = 2  // of the small form of TestStorm
	stormSize   = 50 // rounds of one storm, whose history and content stay small enough to be read after each
)

// TestStorm lets two replicas, whose clocks are a day apart, work over a database and a bucket
// that they reach by ways which delay and drop, while now one and now the other stands still,
// sometimes for longer than every lease. Each deletion reaches the bucket twice. Clients push, publish, attach evidence, promote and
// roll back at both; a collector is always at work. What was acknowledged is there after every
// round, at both replicas. MLPROMOTE_SOAK makes it 500 rounds, MLPROMOTE_CRASH_SEED another
// storm; -run 'TestStorm/from_150' repeats one of them.
func TestStorm(t *testing.T) {
	t.Parallel()
	store, server := registrytest.StartS3Server(t), pgtest.New(t, "fsync=off")
	for first, n := 0, kills(stormRounds); first < n; first += stormSize {
		t.Run(fmt.Sprintf("from %d", first), func(t *testing.T) {
			t.Parallel()
			s := newStorm(t, store, server, first)
			for round := first; round < min(n, first+stormSize) && !t.Failed(); round++ {
				s.round(round)
			}
			s.end()
		})
	}
}

// storm is two replicas and what their clients were told.
type storm struct {
	t        *testing.T
	random   *rand.Rand // of the test's own goroutine
	direct   string     // the database, by a way that is good
	ways     []*way
	replicas []*programtest.Service
	clients  []*stormClient // one of each replica
	deck     []action       // what is drawn from
	now      int            // the round

	told    *told
	history []history.Event // as both replicas gave it
	read    int             // so much of the evidence was read in an earlier round
}

// newStorm starts two replicas on a database and a prefix of their own, and takes two
// releases to prod, so that there is something to return to.
func newStorm(t *testing.T, store *registrytest.S3Server, server *pgtest.Server, first int) *storm {
	t.Helper()
	s := &storm{t: t, now: first, random: seeded(t, stormStream+uint64(first)), direct: server.Database(t), told: newTold()}
	name := fmt.Sprintf("storm-%d", first)
	database, bucket := newWay(t, s.direct, s.random.Uint64()), newWay(t, newRepeater(t, store.Endpoint, uint64(first)), s.random.Uint64())
	s.ways = []*way{database, bucket}
	storage := strings.Replace(store.URL(name), store.Endpoint, bucket.url, 1)
	root := t.TempDir()
	for _, shift := range []string{"0s", "24h"} {
		r := programtest.NewService(t, programtest.Shifted(t), root, append(store.Env(), "MLPROMOTE_DATABASE="+database.url, "MLPROMOTE_STORAGE="+storage, "MLPROMOTE_CLOCK_SHIFT="+shift)...)
		r.Flags = []string{"--gc-interval", "1s", "--gc-grace", "1m"}
		plainRules(t, r.Dir)
		r.MustStart(t)
		s.replicas = append(s.replicas, r)
	}
	key, err := keyfile.Open(filepath.Join(s.replicas[0].Dir, "keys", "local.key"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.replicas {
		s.clients = append(s.clients, newStormClient(t, s, r.URL, key))
	}
	for n, c := range s.clients {
		if err := c.release(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// plainRules writes the environments of a registry that promotes on reports about five cases.
func plainRules(t *testing.T, data string) {
	t.Helper()
	const rules = `registry: local
environments:
  staging: {}
  prod: {from: staging, require: [signature, provenance, parity]}
trust:
  - {key: keys/local.pub, roles: [builder, verifier, approver, promoter], resources: ["oci://local/"]}
`
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "environments.yaml"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
}

// stormStream is the first stream of random numbers that storms have.
const stormStream = 1000

// longPause is longer than every lease, removal and transaction lasts.
const longPause = storage.RemovalTime + time.Second

// round lets clients work at both replicas, of which one stands still for a while, and looks
// for all that was ever acknowledged.
func (s *storm) round(n int) {
	s.t.Helper()
	s.now = n
	s.forget()
	s.age()
	after, pause, more := s.upTo(300*time.Millisecond), s.upTo(2*time.Second), 2
	if n%10 == 1 {
		pause, more = longPause, 2*more
	}
	atStill, atOther := s.draw(1), slices.Concat(s.pushes(2), s.draw(more), s.pushes(2))
	s.blow(true)
	var working sync.WaitGroup
	working.Go(func() { s.clients[n%2].do(s.t.Context(), atStill) })
	working.Go(func() { s.clients[(n+1)%2].do(s.t.Context(), atOther) })
	s.standStill(s.replicas[n%2], after, pause)
	working.Wait()
	s.blow(false)
	s.check()
	s.t.Logf("round %d: %d events, %d pieces of evidence", n, len(s.history), len(s.told.evidence))
}

// blow makes the storm begin or end. What is looked for between storms is found sooner.
func (s *storm) blow(on bool) {
	for _, w := range s.ways {
		w.storm.Store(on)
	}
}

func (s *storm) upTo(most time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(most)))
}

// standStill stops a replica as a machine that is out of memory does. How long is what is
// tried, so nothing can end it earlier.
func (s *storm) standStill(r *programtest.Service, after, pause time.Duration) {
	s.t.Helper()
	for _, step := range []struct {
		wait   time.Duration
		signal syscall.Signal
	}{{after, syscall.SIGSTOP}, {pause, syscall.SIGCONT}} {
		time.Sleep(step.wait)
		if err := r.Process().Signal(step.signal); err != nil {
			s.t.Error(err)
		}
	}
}

// age makes all that collectors look at two days older, but for removals under way.
func (s *storm) age() {
	s.t.Helper()
	err := pgtest.Run(s.t.Context(), s.direct,
		`UPDATE manifests SET created = created - interval '2 days', condemned = condemned - interval '2 days'`,
		`UPDATE blobs SET created = created - interval '2 days', condemned = condemned - interval '2 days'`,
		`UPDATE condemned SET at = at - interval '2 days'`,
		`UPDATE intents SET begun = begun - interval '2 days'`,
		`UPDATE leases SET until = until - interval '1 hour'`)
	if err != nil {
		s.t.Fatal(err)
	}
}

// errorf reports a fault with what repeats it.
func (s *storm) errorf(format string, arguments ...any) {
	s.t.Helper()
	s.t.Errorf("round %d of %s: %s", s.now, s.t.Name(), fmt.Sprintf(format, arguments...))
}
