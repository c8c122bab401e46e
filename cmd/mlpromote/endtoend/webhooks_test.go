//go:build cgo

package endtoend

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/client"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/postgres"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Of two replicas one tells webhooks, and the other goes on when that one stops.
func TestReplicasTellWebhooksOnce(t *testing.T) {
	t.Parallel()
	told := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("webhook-id")
		told <- id
		if strings.HasSuffix(id, ".1") {
			<-time.After(3 * time.Second) // in which every replica looks for what is to be told
		}
	}))
	t.Cleanup(receiver.Close)
	url := pgtest.Shared(t).Database(t)
	root := t.TempDir()
	replicas := make([]*programtest.Service, 2)
	for i := range replicas {
		replicas[i] = programtest.NewService(t, programtest.Program(t), root, "MLPROMOTE_DATABASE="+url)
		replicas[i].Flags = []string{"--private-webhooks-unsafe"}
		replicas[i].MustStart(t)
	}
	db, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	asking, err := client.New(client.Config{URL: replicas[0].URL, Content: oci.New(nil, oci.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	hook, err := asking.AddWebhook(t.Context(), rest.WebhookRequest{URL: receiver.URL})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 10 {
		if n == 5 {
			if err := replicas[0].Stop(); err != nil {
				t.Fatal(err)
			}
		}
		event := history.Event{Time: time.Now(), Kind: history.EventAttach, Environment: "staging", Model: "digits"}
		if _, err := db.Apply(t.Context(), storage.Change{Event: event}); err != nil {
			t.Fatal(err)
		}
		if got, want := next(t, told), fmt.Sprintf("%s.%d", hook.ID, n+1); got != want {
			t.Fatalf("told is %s, want %s, once", got, want)
		}
		programtest.Eventually(t, "the note that it was told", func() bool { // one that is stopped before tells again
			state, err := db.Deliveries().Get(t.Context(), hook.ID)
			return err == nil && state.Delivered == int64(n+1)
		})
	}
}

// next is what comes next.
func next(t *testing.T, told <-chan string) string {
	t.Helper()
	select {
	case got := <-told:
		return got
	case <-time.After(time.Minute):
		t.Fatal("nobody is told of anything")
		return ""
	}
}
