//go:build cgo

package main

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/client"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/registry/storage"
)

// TestServeTellsWebhooks wants the program to tell a webhook what happens, also what it
// could not before it was killed, and to stop while a stream of events is open.
func TestServeTellsWebhooks(t *testing.T) {
	t.Parallel()
	told := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { told <- r.Header.Get("webhook-id") }))
	t.Cleanup(receiver.Close)
	s := programtest.NewService(t, fastProgram(t), t.TempDir())
	s.Flags = []string{"--private-webhooks-unsafe"}
	s.MustStart(t)
	asking, err := client.New(client.Config{URL: s.URL, Content: oci.New(nil, oci.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	hook, err := asking.AddWebhook(t.Context(), rest.WebhookRequest{URL: receiver.URL})
	if err != nil {
		t.Fatal(err)
	}
	happen(t, s)
	wantTold(t, told, hook.ID+".1")
	s.Kill()
	happen(t, s)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	wantTold(t, told, hook.ID+".2")

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/events?after=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "id: 2") {
	}
	began := time.Now()
	if err := s.Stop(); err != nil || time.Since(began) > 30*time.Second/2 {
		t.Errorf("serve stops after %v, error %v", time.Since(began), err)
	}
}

// happen writes an event into the database of a service, as another replica would.
func happen(t *testing.T, s *programtest.Service) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(s.Dir, "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	event := history.Event{Time: time.Now(), Kind: history.EventAttach, Environment: "staging", Model: "digits"}
	if _, err := db.Apply(t.Context(), storage.Change{Event: event}); err != nil {
		t.Fatal(err)
	}
}

// wantTold waits for a delivery. One that came before may come again.
func wantTold(t *testing.T, told <-chan string, id string) {
	t.Helper()
	for deadline := time.After(time.Minute); ; {
		select {
		case got := <-told:
			if got == id {
				return
			}
		case <-deadline:
			t.Fatalf("nobody is told of %s", id)
		}
	}
}
