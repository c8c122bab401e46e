//go:build cgo

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
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

	"mlpromote.dev/mlpromote/registry"
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
	newCrashServed(t, 1, "").rounds(kills)
}

// rounds kills the service so often, or as often as MLPROMOTE_SOAK asks for.
func (c *crashServed) rounds(n int) {
	c.t.Helper()
	if os.Getenv("MLPROMOTE_SOAK") != "" {
		n = soakKills
	}
	job := [][]string{{"build"}, {"verify"}, {"promote"}, {"rollback", "vision/digits", "--env", "prod", "--reason", "crash test"}, {"gc"}}
	for round := range n {
		verb := job[round%len(job)]
		switch verb[0] {
		case "build":
			c.bump()
		case "gc":
			c.collect(round)
			continue
		}
		c.kill(round, verb)
		if verb[0] == "rollback" {
			c.must("hold", "release", "vision/digits", "--env", "prod", "--reason", "crash test")
		}
	}
	c.note.Lock()
	defer c.note.Unlock()
	c.t.Logf("verbs that the kill broke off: %d of %d, and %d collections; acknowledged: %d changes, %d pieces of content", c.broken, n, c.killed, len(c.changes), len(c.content))
	if c.broken == 0 || c.killed == 0 || len(c.changes) == 0 || len(c.content) == 0 {
		c.t.Error("nothing was broken off, or nothing acknowledged: the test tests nothing")
	}
}

// crashServed is a service that lives through all kills, behind a proxy that notes what
// it acknowledged and always is where it was.
type crashServed struct {
	*crash
	server *served
	// standby is a second replica, which takes over when the first is killed; nil: there
	// is none, and the service is started again.
	standby *served
	proxy   *httptest.Server
	asks    map[string]int // requests that a verb makes
	broken  int

	note    sync.Mutex
	target  *url.URL
	seen    int      // requests of the verb
	strike  func()   // for the request number
	at      int      // at; 0: none
	content []string // paths under /v2/ of what was stored
	changes []change
}

// change is a change of heads or evidence that the service said was made.
type change struct {
	kind   registry.EventKind
	env    string
	digest registry.Digest // of the release, or the bundle
}

// newCrashServed serves two releases. The instants of kills are those of crashSeed and
// stream; the catalog is in the database, or, with none, in the data directory.
func newCrashServed(t *testing.T, stream uint64, database string) *crashServed {
	t.Helper()
	seed := uint64(crashSeed)
	if text := os.Getenv("MLPROMOTE_CRASH_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, stream))
	root := t.TempDir()
	c := &crashServed{asks: make(map[string]int), crash: &crash{
		t: t, random: random, program: fastProgram(t), dir: filepath.Join(root, "digits"), takes: make(map[string]time.Duration),
		env: append(os.Environ(), environment(root, testCache(t))...),
	}}
	c.server = c.replica(root, database)
	c.start()
	t.Cleanup(func() { c.server.kill() })
	if database != "" {
		c.standby = c.replica(root, database)
		if err := c.standby.start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.standby.kill() })
	}
	c.proxy = httptest.NewServer(c.forward())
	t.Cleanup(c.proxy.Close)
	c.crash.env = append(c.crash.env, "MLPROMOTE_REGISTRY="+c.proxy.URL, "MLPROMOTE_DATA="+c.server.client)
	err := errors.Join(
		copyTree(filepath.Join(c.server.dir, "keys"), filepath.Join(c.server.client, "keys")),
		copyTree(filepath.Join(examples, "digits"), c.dir), oneTarget(c.dir))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // two releases in prod, so that there is something to return to
		c.bump()
		for _, verb := range []string{"build", "verify", "promote"} {
			c.arm(0, nil)
			c.must(verb)
			c.asks[verb] = c.requests()
		}
	}
	c.asks["rollback"] = 2 // it asks for the environments, and for the rollback
	return c
}

func (c *crashServed) replica(root, database string) *served {
	return &served{
		program: c.program, dir: filepath.Join(root, "served"), client: filepath.Join(root, "client"),
		env: append(environment(root, testCache(c.t)), "MLPROMOTE_DATABASE="+database),
		// Each replica collects all along. What neighbours push falls due after two minutes, so
		// that in a long run it is killed at that, too.
		flags: []string{"--gc-interval", "1s", "--gc-grace", "1m"},
	}
}

// start starts the service where nobody stands by to take over.
func (c *crashServed) start() {
	c.t.Helper()
	if c.standby != nil {
		c.server, c.standby = c.standby, c.server
	} else if err := c.server.start(); err != nil {
		c.t.Fatal(err)
	}
	c.aim()
}

// aim makes the proxy ask the service where it is now.
func (c *crashServed) aim() {
	c.t.Helper()
	target, err := url.Parse(c.server.url)
	if err != nil {
		c.t.Fatal(err)
	}
	c.note.Lock()
	defer c.note.Unlock()
	c.target = target
}

// arm makes request number n of what follows the one after which strike is called.
func (c *crashServed) arm(n int, strike func()) {
	c.note.Lock()
	defer c.note.Unlock()
	c.seen, c.at, c.strike = 0, n, strike
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
			go c.strike()
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
	kinds := map[string]registry.EventKind{ // of what answers with a digest
		"evidence": registry.EventAttach, "publications": registry.EventPublish, "promotions": registry.EventPromote, "rollbacks": registry.EventRollback,
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

// kill runs a verb, kills the service meanwhile, and lets the verb be run again.
func (c *crashServed) kill(n int, args []string) {
	c.t.Helper()
	request := 1 + c.random.IntN(c.asks[args[0]])
	delay := time.Duration(c.random.Float64() * float64(maxDelay))
	before := c.head("prod")
	victim := c.server.cmd.Process
	c.arm(request, func() { time.AfterFunc(delay, func() { _ = victim.Kill() }) })
	neighbours := c.neighbours()
	cmd := c.command(args...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		c.broken++
	case err != nil: // what is torn must not look like what is forged, refused or missing
		c.t.Fatalf("kill %d after request %d of %s: %v\n%s", n, request, args[0], err, out)
	}
	c.server.kill()
	neighbours()
	c.arm(0, nil)
	c.start()
	c.check(n, args[0])
	c.kept(n)
	if args[0] != "rollback" || c.head("prod") == before { // a second one would go further back
		c.arm(0, nil)
		c.must(args...)
		c.asks[args[0]] = max(c.asks[args[0]], c.requests())
	}
	c.check(n, args[0]+" again")
	if c.standby != nil {
		if err := c.standby.start(); err != nil {
			c.t.Fatal(err)
		}
	}
}

// garbage is how many blobs that nothing needs there are for each collection.
const garbage = 20

// collect leaves blobs that nothing needs, ends all replicas, collects, ends that at a random
// instant, and lets another collection finish. What is needed is all there, and no more.
func (c *crashServed) collect(n int) {
	c.t.Helper()
	for range garbage {
		if _, err := c.visit(c.t.Context(), c.server.url, n); err != nil {
			c.t.Fatal(err)
		}
	}
	c.server.kill()
	if c.standby != nil {
		c.standby.kill()
	}
	gc := func() *exec.Cmd {
		cmd := exec.CommandContext(c.t.Context(), c.program, "gc", "--grace", "0s", "--data", c.server.dir, "--output", "json")
		cmd.Env = append(os.Environ(), c.server.env...)
		return cmd
	}
	if c.takes["gc"] == 0 { // of one that is not killed, and has about as much to do
		began := time.Now()
		if out, err := gc().CombinedOutput(); err != nil {
			c.t.Fatalf("gc: %v\n%s", err, out)
		}
		c.takes["gc"] = time.Since(began)
	}
	for before, tries := c.killed, 0; c.killed == before && tries < 3; tries++ { // it may be quicker than the last
		c.strikeDown(n, gc())
	}
	if out, err := gc().CombinedOutput(); err != nil {
		c.t.Fatalf("gc after kill %d: %v\n%s", n, err, out)
	}
	if out, err := gc().Output(); err != nil || !bytes.Contains(out, []byte(`"blobs": 0`)) {
		c.t.Errorf("after kill %d and a collection that ended well, there is more to collect: %v\n%s", n, err, out)
	}
	for _, s := range []*served{c.standby, c.server} {
		if s == nil {
			continue
		}
		if err := s.start(); err != nil {
			c.t.Fatal(err)
		}
	}
	c.aim()
	c.check(n, "gc")
	c.kept(n)
}

// strikeDown starts a collection and ends it at a random instant of the time that it takes.
func (c *crashServed) strikeDown(n int, gc *exec.Cmd) {
	c.t.Helper()
	if err := gc.Start(); err != nil {
		c.t.Fatal(err)
	}
	timer := time.AfterFunc(time.Duration(c.random.Float64()*float64(c.takes["gc"])), func() { _ = gc.Process.Kill() }) // it may be gone already
	err := gc.Wait()
	timer.Stop()
	var exit *exec.ExitError
	if errors.As(err, &exit) && !exit.Exited() {
		c.killed++
	} else if err != nil {
		c.t.Fatalf("kill %d: gc: %v", n, err)
	}
}

// kept wants all that was ever acknowledged.
func (c *crashServed) kept(n int) {
	c.t.Helper()
	var events []registry.Event
	if err := json.Unmarshal([]byte(c.must("history", "list", "--output", "json")), &events); err != nil {
		c.t.Fatal(err)
	}
	c.note.Lock()
	defer c.note.Unlock()
	for _, made := range c.changes {
		there := slices.ContainsFunc(events, func(e registry.Event) bool {
			return e.Kind == made.kind && (made.env == "" || e.Environment == made.env) && (e.Release == made.digest || slices.Contains(e.Evidence, made.digest))
		})
		if !there {
			c.t.Errorf("kill %d: history lost %+v", n, made)
		}
	}
	for _, path := range c.content {
		request, err := http.NewRequestWithContext(c.t.Context(), http.MethodHead, c.server.url+path, nil)
		if err != nil {
			c.t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			c.t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			c.t.Errorf("kill %d: %s is gone: %s", n, path, response.Status)
		}
	}
}
