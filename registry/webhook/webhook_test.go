package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/webhook"
)

// received is one request that a receiver got.
type received struct {
	header http.Header
	body   []byte
}

func (r received) event(t *testing.T) history.Event {
	t.Helper()
	var p webhook.Payload
	if err := json.Unmarshal(r.body, &p); err != nil || p.Type != p.Data.Kind || !p.Timestamp.Equal(p.Data.Time) {
		t.Fatalf("the payload is %s, error %v", r.body, err)
	}
	return p.Data
}

// world is a database with webhooks and one receiver.
type world struct {
	config webhook.Config
	db     *mem.DB
	clock  *registrytest.Clock
	url    string

	mu     sync.Mutex
	got    []received
	answer func(n int) int // status of the answer to the nth request from 1
}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{db: mem.New(), clock: registrytest.NewClock(), answer: func(int) int { return http.StatusNoContent }}
	w.db.Now = w.clock.Now
	receiver := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.got = append(w.got, received{r.Header, body})
		status := w.answer(len(w.got))
		if status == http.StatusTooManyRequests {
			rw.Header().Set("Retry-After", "1800")
		}
		rw.WriteHeader(status)
	}))
	t.Cleanup(receiver.Close)
	w.url = receiver.URL + "/hook"
	w.config = webhook.Config{
		Webhooks: mem.NewTable[storage.Webhook](), Deliveries: mem.NewTable[storage.Delivery](), Leases: w.db, History: w.db.History,
		PrivateUnsafe: true, Clock: w.db, Interval: time.Millisecond,
	}
	return w
}

func (w *world) deliverer(t *testing.T) *webhook.Deliverer {
	t.Helper()
	d, err := webhook.New(w.config)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (w *world) register(t *testing.T, id string, edit func(h *storage.Webhook)) {
	t.Helper()
	h := storage.Webhook{URL: w.url, Secret: []byte("0123456789abcdef0123456789abcdef"), Created: w.clock.Now()}
	if edit != nil {
		edit(&h)
	}
	if err := w.config.Webhooks.Put(t.Context(), id, h); err != nil {
		t.Fatal(err)
	}
}

// happen appends events of a kind.
func (w *world) happen(t *testing.T, environment string, kinds ...history.EventKind) {
	t.Helper()
	for _, kind := range kinds {
		if _, err := w.db.Apply(t.Context(), storage.Change{Event: history.Event{Time: w.clock.Now(),
			Kind: kind, Environment: environment, Model: "digits"}}); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) round(t *testing.T, d *webhook.Deliverer) []received {
	t.Helper()
	if err := d.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w.take()
}

func (w *world) take() []received {
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.got
	w.got = nil
	return got
}

func (w *world) state(t *testing.T, id string) storage.Delivery {
	t.Helper()
	state, err := w.config.Deliveries.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// The signature is checked here as the specification says, not by our own code.
func TestDeliveriesAreSigned(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.register(t, "h", nil)
	w.happen(t, "prod", history.EventPromote)
	got := w.round(t, w.deliverer(t))
	if len(got) != 1 || got[0].event(t).Seq != 1 {
		t.Fatalf("%d deliveries", len(got))
	}
	id, timestamp := got[0].header.Get("Webhook-Id"), got[0].header.Get("Webhook-Timestamp")
	mac := hmac.New(sha256.New, []byte("0123456789abcdef0123456789abcdef"))
	mac.Write([]byte(id + "." + timestamp + "." + string(got[0].body)))
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); got[0].header.Get("Webhook-Signature") != want || id != "h.1" {
		t.Errorf("%v, want the signature %s", got[0].header, want)
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if age := time.Unix(seconds, 0).Sub(w.clock.Now()).Abs(); err != nil || age > time.Hour {
		t.Errorf("the timestamp is %q, want the seconds of %v", timestamp, w.clock.Now())
	}
	// As the specification has it: base64 behind whsec_.
	if text := (storage.Webhook{Secret: []byte{1, 2, 3}}).SecretText(); text != "whsec_AQID" {
		t.Errorf("a secret is written %s", text)
	}
	if a, b := storage.NewWebhookSecret(), storage.NewWebhookSecret(); len(a) != 32 || string(a) == string(b) {
		t.Error("secrets are not random")
	}
}

// A delivery links to the page of the release that it is about, where the service says at which address people reach it.
func TestDeliveriesLinkToPages(t *testing.T) {
	t.Parallel()
	for service, want := range map[string]bool{"": false, "https://registry.example.com/": true} {
		w := setup(t)
		w.config.URL = service
		w.register(t, "h", nil)
		e := history.Event{Time: w.clock.Now(), Kind: history.EventPromote, Environment: "prod",
			Model: "digits", Release: registry.Digest("sha256:" + strings.Repeat("a", 64))}
		if _, err := w.db.Apply(t.Context(), storage.Change{Event: e}); err != nil {
			t.Fatal(err)
		}
		got := w.round(t, w.deliverer(t))
		var p webhook.Payload
		if len(got) != 1 || json.Unmarshal(got[0].body, &p) != nil {
			t.Fatalf("%d deliveries, want one", len(got))
		}
		link := ""
		if want {
			link = api.ReleasePage(service, p.Data.Model, p.Data.Release, "prod")
		}
		if p.Page != link {
			t.Errorf("a service at %q links to %q, want %q", service, p.Page, link)
		}
	}
}

func TestWhatIsWantedIsToldOnceAndInOrder(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.happen(t, "prod", history.EventPublish, history.EventPublish)
	w.register(t, "all", func(h *storage.Webhook) { h.URL, h.After = w.url+"/all", 2 })
	w.register(t, "some", func(h *storage.Webhook) {
		h.URL, h.Environment, h.Model, h.Kinds = w.url+"/some", "prod", "digits", []history.EventKind{history.EventPromote, history.EventRollback}
	})
	w.happen(t, "prod", history.EventAttach, history.EventPromote)
	w.happen(t, "staging", history.EventPromote)
	w.happen(t, "prod", history.EventRollback)
	d := w.deliverer(t)
	told := map[string][]int64{}
	for range 3 {
		for _, r := range w.round(t, d) {
			hook, _, _ := strings.Cut(r.header.Get("Webhook-Id"), ".")
			told[hook] = append(told[hook], r.event(t).Seq)
		}
	}
	want := map[string][]int64{"all": {3, 4, 5, 6}, "some": {4, 6}}
	for hook, seqs := range want {
		if len(told[hook]) != len(seqs) {
			t.Errorf("%s was told of %v, want %v", hook, told[hook], seqs)
			continue
		}
		for i := range seqs {
			if told[hook][i] != seqs[i] {
				t.Errorf("%s was told of %v, want %v", hook, told[hook], seqs)
			}
		}
	}
	if state := w.state(t, "some"); state != (storage.Delivery{Delivered: 6}) {
		t.Errorf("the state is %+v", state)
	}
}

// A failure is tried again, later each time, with the same identifier, and holds back what
// comes behind it.
func TestRetries(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.answer = func(int) int { return http.StatusInternalServerError }
	w.register(t, "h", nil)
	w.happen(t, "prod", history.EventPromote, history.EventRollback)
	d := w.deliverer(t)
	var waits []time.Duration
	for n := 1; n <= 12; n++ {
		got := w.round(t, d)
		if len(got) != 1 || got[0].header.Get("Webhook-Id") != "h.1" {
			t.Fatalf("attempt %d: %d deliveries", n, len(got))
		}
		state := w.state(t, "h")
		if state.Attempts != n || !strings.Contains(state.LastError, "500") || state.Delivered != 0 || !state.Suspended.IsZero() {
			t.Fatalf("after attempt %d: %+v", n, state)
		}
		wait := state.NextAttempt.Sub(w.clock.Now())
		waits = append(waits, wait)
		w.clock.Pass(wait - time.Second)
		if got := w.round(t, d); len(got) != 0 {
			t.Fatalf("attempt %d came too early", n+1)
		}
		w.clock.Pass(time.Second)
	}
	if waits[0] < 2*time.Second || waits[0] > 5*time.Second || waits[11] < 30*time.Minute || waits[11] > time.Hour || waits[5] < 4*waits[0] {
		t.Errorf("the waits are %v", waits)
	}
	w.answer = func(int) int { return http.StatusOK }
	if got := w.round(t, d); len(got) != 2 || w.state(t, "h") != (storage.Delivery{Delivered: 2}) {
		t.Errorf("%d deliveries, and the state is %+v", len(got), w.state(t, "h"))
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.answer = func(int) int { return http.StatusTooManyRequests }
	w.register(t, "h", nil)
	w.happen(t, "prod", history.EventPromote)
	w.round(t, w.deliverer(t))
	if wait := w.state(t, "h").NextAttempt.Sub(w.clock.Now()); wait < 30*time.Minute || wait > time.Hour { // it is counted from the answer on
		t.Errorf("the wait is %v, want 30m", wait)
	}
}

// A failure while the clock was years ahead does not delay the next attempts.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const ahead = 10 * 365 * 24 * time.Hour
	w.answer = func(int) int { return http.StatusServiceUnavailable }
	w.register(t, "h", nil)
	w.happen(t, "prod", history.EventPromote)
	d := w.deliverer(t)
	w.clock.Pass(ahead)
	w.round(t, d)
	w.clock.Pass(-ahead)
	w.answer = func(int) int { return http.StatusOK }
	if got := w.round(t, d); len(got) != 1 {
		t.Errorf("%d deliveries, want the one that failed", len(got))
	}
}

// What nobody takes is given up, keeps its place, and goes on when it is resumed.
func TestSuspension(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"after many attempts": http.StatusFound, "at once where it is gone": http.StatusGone} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.answer = func(int) int { return status }
			w.register(t, "h", nil)
			w.happen(t, "prod", history.EventPromote)
			d := w.deliverer(t)
			attempts := 0
			for range 40 {
				attempts += len(w.round(t, d))
				w.clock.Pass(2 * time.Hour)
			}
			if want := map[int]int{http.StatusFound: 20, http.StatusGone: 1}[status]; attempts != want {
				t.Errorf("%d attempts, want %d", attempts, want)
			}
			if state := w.state(t, "h"); state.Suspended.IsZero() || state.Delivered != 0 {
				t.Errorf("the state is %+v", state)
			}
			w.happen(t, "prod", history.EventRollback)
			w.register(t, "h", func(h *storage.Webhook) { h.Resumed = w.clock.Now() })
			w.answer = func(int) int { return http.StatusOK }
			if got := w.round(t, d); len(got) != 2 || w.state(t, "h") != (storage.Delivery{Delivered: 2}) {
				t.Errorf("resumed: %d deliveries, and the state is %+v", len(got), w.state(t, "h"))
			}
		})
	}
}

// Of two replicas one delivers; the other goes on when the lease has run out, or at once
// when the first has stopped.
func TestOneReplicaDelivers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.register(t, "h", nil)
	one, two := w.deliverer(t), w.deliverer(t)
	w.round(t, one)
	w.happen(t, "prod", history.EventPromote)
	if got := w.round(t, two); len(got) != 0 {
		t.Errorf("both deliver")
	}
	w.clock.Pass(2 * time.Minute) // the first is dead
	if got := w.round(t, two); len(got) != 1 {
		t.Errorf("nobody delivers")
	}
	w.happen(t, "prod", history.EventRollback)
	if got := w.round(t, one); len(got) != 0 {
		t.Errorf("the first comes back and delivers beside the second")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	two.Run(ctx)
	if got := w.round(t, one); len(got) != 1 {
		t.Errorf("a replica that stops keeps the lease")
	}
}

// Run delivers what happens while it runs, and ends with its context.
func TestRun(t *testing.T) {
	t.Parallel()
	w := setup(t)
	arrived := make(chan struct{}, 1)
	w.answer = func(int) int { arrived <- struct{}{}; return http.StatusOK }
	w.register(t, "h", nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { w.deliverer(t).Run(ctx); close(ended) }()
	w.happen(t, "prod", history.EventPromote)
	select {
	case <-arrived:
	case <-time.After(10 * time.Second):
		t.Error("nothing arrives")
	}
	cancel()
	<-ended
}

// A webhook that is deleted while it is told leaves nothing behind.
func TestDeletedWhileTold(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.register(t, "h", nil)
	w.happen(t, "prod", history.EventPromote)
	w.answer = func(int) int {
		if err := w.config.Webhooks.Delete(context.Background(), "h"); err != nil {
			t.Error(err)
		}
		return http.StatusOK
	}
	w.round(t, w.deliverer(t))
	if left, err := w.config.Deliveries.List(t.Context(), "", 10); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if d, err := webhook.New(webhook.Config{}); d != nil || registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("got %v, %v", d, err)
	}
}
