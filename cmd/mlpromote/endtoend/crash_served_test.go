//go:build cgo

package endtoend

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
)

// maxDelay is how long after a request arrived the service is killed, at most. Most
// requests take less.
const maxDelay = 4 * time.Millisecond

// TestCrashServed ends the service with SIGKILL while a client pushes, attaches, promotes
// and rolls back: after a random one of the requests that the verb makes, a random moment
// later. In turn with these, it ends a collection of what nothing needs. After each restart
// nothing is torn, all that was acknowledged is there, no protected head is without its
// summary, and the same verb, run again, finishes.
func TestCrashServed(t *testing.T) {
	t.Parallel()
	newCrashServed(t, 1, "").killAll()
}

// servedKills is enough for each of five verbs on each of two replicas.
const servedKills = 2 * 5

// killAll kills the service so often, or as often as MLPROMOTE_SOAK asks for.
func (c *crashServed) killAll() {
	c.T.Helper()
	n, verbs := kills(servedKills), append(victims(), []string{"gc"})
	for round := range n {
		verb, turn := verbs[round%len(verbs)], round/len(verbs)
		switch verb[0] {
		case "build":
			c.Bump()
		case "gc":
			c.collect(turn)
			continue
		}
		c.kill(turn, verb)
		if verb[0] == "rollback" {
			c.releaseHold()
		}
	}
	c.note.Lock()
	defer c.note.Unlock()
	c.T.Logf("verbs that the kill broke off: %d of %d, and %d collections; acknowledged: %d changes, %d pieces of content", c.broken, n, c.killed, len(c.changes), len(c.content))
	if c.broken == 0 || c.killed == 0 || len(c.changes) == 0 || len(c.content) == 0 {
		c.T.Error("nothing was broken off, or nothing acknowledged: the test tests nothing")
	}
}

// crashServed is a service that lives through all kills, behind a proxy that notes what
// it acknowledged and always is where it was.
type crashServed struct {
	*crash
	server *programtest.Service
	// standby is a second replica, which takes over when the first is killed; nil: there
	// is none, and the service is started again.
	standby *programtest.Service
	proxy   *httptest.Server
	asks    map[string]int // requests that a verb makes
	broken  int

	note    sync.Mutex
	target  *url.URL
	seen    int      // requests of the verb
	blow    func()   // for the request number
	at      int      // at; 0: none
	content []string // paths under /v2/ of what was stored
	changes []change
}

// change is a change of heads or evidence that the service said was made.
type change struct {
	kind   history.EventKind
	env    string
	digest registry.Digest // of the release, or the bundle
}

// newCrashServed serves two releases. The instants of kills are those of crashSeed and
// stream; the catalog is in the database, or, with none, in the data directory.
func newCrashServed(t *testing.T, stream uint64, database string) *crashServed {
	t.Helper()
	root, program := t.TempDir(), programtest.Program(t)
	replica := func() *programtest.Service {
		s := programtest.NewService(t, program, root, "MLPROMOTE_DATABASE="+database)
		// Each replica collects all along. What neighbours push falls due after two minutes, so
		// that in a long run it is killed at that, too.
		s.Flags = []string{"--gc-interval", "1s", "--gc-grace", "1m"}
		s.MustStart(t)
		return s
	}
	c := &crashServed{server: replica(), asks: make(map[string]int)}
	if database != "" {
		c.standby = replica()
	}
	c.proxy = httptest.NewServer(c.forward())
	t.Cleanup(c.proxy.Close)
	env := append(programtest.Environment(root, programtest.Cache(t)), "MLPROMOTE_REGISTRY="+c.proxy.URL, "MLPROMOTE_DATA="+c.server.Client)
	c.crash = &crash{Job: programtest.NewJob(t, program, filepath.Join(root, "digits"), env...), random: seeded(t, stream), takes: make(map[string]time.Duration)}
	c.aim()
	if err := c.server.ShareKeys(); err != nil {
		t.Fatal(err)
	}
	c.begin(func(verb string) {
		c.arm(0, nil)
		c.Must(verb)
		c.asks[verb] = c.requests()
	})
	c.asks["rollback"] = 2 // it asks for the environments, and for the rollback
	return c
}

// start starts the service where nobody stands by to take over.
func (c *crashServed) start() {
	c.T.Helper()
	if c.standby != nil {
		c.server, c.standby = c.standby, c.server
	} else if err := c.server.Start(); err != nil {
		c.T.Fatal(err)
	}
	c.aim()
}

// aim makes the proxy ask the service where it is now.
func (c *crashServed) aim() {
	c.T.Helper()
	target, err := url.Parse(c.server.URL)
	if err != nil {
		c.T.Fatal(err)
	}
	c.note.Lock()
	defer c.note.Unlock()
	c.target = target
}

// arm makes request number n of what follows the one after which blow is called.
func (c *crashServed) arm(n int, blow func()) {
	c.note.Lock()
	defer c.note.Unlock()
	c.seen, c.at, c.blow = 0, n, blow
}

func (c *crashServed) requests() int {
	c.note.Lock()
	defer c.note.Unlock()
	return c.seen
}

// forward is the proxy. Where the service is gone, it hangs up as the service would.
func (c *crashServed) forward() http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			c.note.Lock()
			defer c.note.Unlock()
			r.SetURL(c.target)
			r.Out.Host = r.In.Host
			r.Out.Header.Del("Accept-Encoding") // what is acknowledged is read here
		},
		Transport:      &http.Transport{DisableKeepAlives: true}, // a connection to a service that is gone is no news
		ModifyResponse: c.acknowledged,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.note.Lock()
		if c.seen++; c.seen == c.at {
			go c.blow()
		}
		c.note.Unlock()
		proxy.ServeHTTP(w, r)
	})
}

// acknowledged notes what the service says it has done.
func (c *crashServed) acknowledged(r *http.Response) error {
	if r.StatusCode/100 != 2 || r.Request.Method == http.MethodGet || r.Request.Method == http.MethodHead {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	path := r.Request.URL.Path
	c.note.Lock()
	defer c.note.Unlock()
	if strings.HasPrefix(path, "/v2/") {
		if location, err := r.Location(); r.StatusCode == http.StatusCreated && err == nil {
			c.content = append(c.content, location.Path)
		}
		return nil
	}
	kinds := map[string]history.EventKind{ // of what answers with a digest
		"evidence": history.EventAttach, "publications": history.EventPublish, "promotions": history.EventPromote, "rollbacks": history.EventRollback,
	}
	var said struct {
		Environment     string
		Release, Bundle registry.Digest
	}
	if kind, ok := kinds[path[strings.LastIndex(path, "/")+1:]]; ok {
		if err := json.Unmarshal(body, &said); err != nil {
			return err
		}
		c.changes = append(c.changes, change{kind, said.Environment, said.Release + said.Bundle})
	}
	return nil
}

// kill runs a verb, kills the service meanwhile, and lets the verb be run again. Its turn
// says in which third of its requests.
func (c *crashServed) kill(turn int, args []string) {
	c.T.Helper()
	request := 1 + int(c.instant(turn)*float64(c.asks[args[0]]))
	delay := time.Duration(c.random.Float64() * float64(maxDelay))
	before := c.Head("prod")
	victim := c.server.Process()
	c.arm(request, func() { time.AfterFunc(delay, func() { _ = victim.Kill() }) })
	neighbours := c.neighbours()
	cmd := c.Command(args...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && (exit.ExitCode() == registry.ExitFailed || exit.ExitCode() == registry.ExitAgain):
		c.broken++
	case err != nil: // what is torn must not look like what is forged, refused or missing
		c.T.Fatalf("killed after request %d of %s: %v\n%s", request, args[0], err, out)
	}
	c.server.Kill()
	neighbours()
	c.arm(0, nil)
	c.start()
	c.Check("killed after request " + strconv.Itoa(request) + " of " + args[0])
	c.kept()
	if args[0] != "rollback" || c.Head("prod") == before { // a second one would go further back
		c.arm(0, nil)
		c.Must(args...)
		c.asks[args[0]] = max(c.asks[args[0]], c.requests())
	}
	c.Check(args[0] + " again")
	if c.standby != nil {
		if err := c.standby.Start(); err != nil {
			c.T.Fatal(err)
		}
	}
}

// garbage is how many blobs that nothing needs there are for each collection.
const garbage = 20

// collect leaves blobs that nothing needs, ends all replicas, collects, ends that at a random
// instant, and lets another collection finish. What is needed is all there, and no more.
func (c *crashServed) collect(turn int) {
	c.T.Helper()
	for range garbage {
		if _, err := c.visit(c.T.Context(), c.server.URL, 0); err != nil {
			c.T.Fatal(err)
		}
	}
	c.server.Kill()
	if c.standby != nil {
		c.standby.Kill()
	}
	grace := "0s"
	if c.standby != nil {
		grace = "1h" // of a database it is not known that no replica is left, so this marks, and deletes nothing while the test runs
	}
	gc := func() *exec.Cmd {
		cmd := exec.CommandContext(c.T.Context(), c.Program, "gc", "--grace", grace, "--data", c.server.Dir, "--output", "json")
		cmd.Env = append(os.Environ(), c.server.Env...)
		return cmd
	}
	if c.takes["gc"] == 0 { // of one that is not killed, and has about as much to do
		began := time.Now()
		if out, err := gc().CombinedOutput(); err != nil {
			c.T.Fatalf("gc: %v\n%s", err, out)
		}
		c.takes["gc"] = time.Since(began)
	}
	for before, tries := c.killed, 0; c.killed == before && tries < 3; tries++ { // it may be quicker than the last
		c.strike(gc(), "gc", turn+tries)
	}
	if out, err := gc().CombinedOutput(); err != nil {
		c.T.Fatalf("gc after one that was killed: %v\n%s", err, out)
	}
	if out, err := gc().Output(); err != nil || !bytes.Contains(out, []byte(`"blobs": 0`)) {
		c.T.Errorf("after a collection that ended well, there is more to collect: %v\n%s", err, out)
	}
	for _, s := range []*programtest.Service{c.standby, c.server} {
		if s == nil {
			continue
		}
		if err := s.Start(); err != nil {
			c.T.Fatal(err)
		}
	}
	c.aim()
	c.Check("gc")
	c.kept()
}

// kept wants all that was ever acknowledged.
func (c *crashServed) kept() {
	c.T.Helper()
	var events []history.Event
	if err := json.Unmarshal([]byte(c.Must("history", "list", "--output", "json")), &events); err != nil {
		c.T.Fatal(err)
	}
	c.note.Lock()
	defer c.note.Unlock()
	for _, made := range c.changes {
		there := slices.ContainsFunc(events, func(e history.Event) bool {
			return e.Kind == made.kind && (made.env == "" || e.Environment == made.env) && (e.Release == made.digest || slices.Contains(e.Evidence, made.digest))
		})
		if !there {
			c.T.Errorf("history lost %+v", made)
		}
	}
	for _, path := range c.content {
		request, err := http.NewRequestWithContext(c.T.Context(), http.MethodHead, c.server.URL+path, nil)
		if err != nil {
			c.T.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			c.T.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			c.T.Errorf("%s is gone: %s", path, response.Status)
		}
	}
}
