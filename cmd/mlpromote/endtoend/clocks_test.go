//go:build cgo

package endtoend

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/client"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
	"mlpromote.dev/mlpromote/registry/rest"
)

// TestReplicasWithWrongClocks lets a replica work whose clock is two hours ahead, and kills
// it: it holds nothing back from others for longer than any replica would. Then one comes
// whose clock is more than a day ahead, and ends no upload of another replica.
func TestReplicasWithWrongClocks(t *testing.T) {
	t.Parallel()
	refused := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refused <- r.Header.Get("webhook-id")
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(receiver.Close)
	root, url := t.TempDir(), pgtest.Shared(t).Database(t)
	replica := func(ahead string) *programtest.Service {
		s := programtest.NewService(t, programtest.Shifted(t), root, "MLPROMOTE_DATABASE="+url, "MLPROMOTE_CLOCK_SHIFT="+ahead)
		s.Flags = []string{"--private-webhooks-unsafe", "--gc-interval", "1s"}
		s.MustStart(t)
		return s
	}
	early := replica("2h")
	asking, err := client.New(client.Config{URL: early.URL, Content: oci.New(nil, oci.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := asking.AddWebhook(t.Context(), rest.WebhookRequest{URL: receiver.URL}); err != nil {
		t.Fatal(err)
	}
	if err := early.ShareKeys(); err != nil {
		t.Fatal(err)
	}
	job := programtest.NewJob(t, programtest.Program(t), root+"/digits", append(programtest.Environment(root, programtest.Cache(t)), "MLPROMOTE_REGISTRY="+early.URL, "MLPROMOTE_DATA="+early.Client)...)
	job.Must("build")
	next(t, refused)
	programtest.Eventually(t, "a collection", func() bool { return collections(t, early) > 0 })
	wantWithin := func(what, query string, most time.Duration) {
		t.Helper()
		var seconds *float64
		programtest.Eventually(t, what, func() bool {
			return pgtest.Row(t.Context(), url, query, &seconds) == nil && seconds != nil
		})
		if got := time.Duration(*seconds * float64(time.Second)); got > most {
			t.Errorf("%s: others wait for %v, want at most %v", what, got, most)
		}
	}
	wantWithin("the next try of a webhook", `SELECT extract(epoch FROM max((body::json->>'nextAttempt')::timestamptz) - now())::float8 FROM documents WHERE kind = 'delivery'`, time.Minute)
	early.Kill()
	wantWithin("leases", `SELECT extract(epoch FROM max(until) - now())::float8 FROM leases`, time.Minute)

	slow := replica("0s")
	place := uploadStep(t, http.MethodPost, slow.URL+"/v2/staging/a/blobs/uploads/", "", http.StatusAccepted)
	uploadStep(t, http.MethodPatch, slow.URL+place, "first ", http.StatusAccepted)
	tomorrow := replica("30h") // which sweeps when it starts, and then with every collection
	programtest.Eventually(t, "a collection by a replica that is a day ahead", func() bool {
		if collections(t, tomorrow) > 0 {
			return true
		}
		err := pgtest.Exec(t.Context(), url, `DELETE FROM leases WHERE name = 'collection'`) // that of the one that was killed, and then of whoever is next
		return err != nil
	})
	uploadStep(t, http.MethodPatch, slow.URL+place, "second", http.StatusAccepted)
	uploadStep(t, http.MethodPut, slow.URL+place+"?digest="+digest.FromString("first second").String(), "", http.StatusCreated)
}

// uploadStep sends a piece of an upload and gives where it goes on.
func uploadStep(t *testing.T, method, url, piece string, want int) (location string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(piece))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/octet-stream")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != want {
		t.Fatalf("%s %s: %s, want %d: %s (%v)", method, url, response.Status, want, said, err)
	}
	return response.Header.Get("Location")
}
