//go:build cgo

package endtoend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
)

// onPostgres is a service whose catalog is in PostgreSQL.
func onPostgres(t *testing.T, server *pgtest.Server) *programtest.Service {
	t.Helper()
	s := programtest.NewService(t, programtest.Program(t), t.TempDir(), "MLPROMOTE_DATABASE="+server.Database(t))
	s.MustStart(t)
	return s
}

// restartSeed makes the instants of TestPostgresRestartsServed about the same in every run.
const restartSeed = 20260101

// TestPostgresRestartsServed stops PostgreSQL, by request of an administrator or as if it
// crashed, while clients write through the service, and starts it again. All that was
// acknowledged is there. What was not is a 503 that says when to come again, in the form of
// its protocol, and succeeds when it is sent again. MLPROMOTE_SOAK does it more often.
func TestPostgresRestartsServed(t *testing.T) {
	t.Parallel()
	restarts := 2
	if os.Getenv("MLPROMOTE_SOAK") != "" {
		restarts = 50
	}
	server := pgtest.New(t)
	s := onPostgres(t, server)
	l := &restarted{t: t, url: s.URL, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}, kept: make(map[string][]byte)}
	var writers sync.WaitGroup
	for n := range 4 {
		writers.Go(func() { l.write(n) })
	}
	random := rand.New(rand.NewPCG(restartSeed, 0))
	for n := range restarts {
		l.await(10 + random.Int64N(40))
		server.Stop(t, []string{"fast", "immediate"}[n%2])
		before := l.refused.Load()
		programtest.Eventually(t, "a request while the database is down", func() bool { return l.refused.Load() > before })
		server.Start(t)
	}
	l.await(20)
	l.over.Store(true)
	writers.Wait()
	for path, want := range l.kept {
		if status, _, got := l.send(http.MethodGet, path, nil); status != http.StatusOK || want != nil && !bytes.Equal(got, want) {
			t.Errorf("%s was acknowledged, and is now: %d %.200s", path, status, got)
		}
	}
	t.Logf("acknowledged %d writes, refused %d", l.acknowledged.Load(), l.refused.Load())
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

// restarted is clients of a service whose database comes and goes.
type restarted struct {
	t                     *testing.T
	url                   string
	client                *http.Client
	over                  atomic.Bool
	acknowledged, refused atomic.Int64

	mu   sync.Mutex
	kept map[string][]byte // by path; nil: of any bytes
}

func (l *restarted) await(n int64) {
	l.t.Helper()
	until := l.acknowledged.Load() + n
	programtest.Eventually(l.t, "writes that are acknowledged", func() bool { return l.acknowledged.Load() >= until || l.t.Failed() })
}

// write writes names, blobs, manifests and tags until it is over, each as often as it takes.
func (l *restarted) write(writer int) {
	repository := fmt.Sprintf("/v2/staging/restarts-%d", writer)
	for n := 0; !l.over.Load() && !l.t.Failed(); n++ {
		l.insist(http.MethodPut, fmt.Sprintf("/api/v1/node-types/w%d-n%d", writer, n), []byte(`{"v":1,"os":"linux","cpu":{"arch":"amd64"}}`), "", nil)
		config := fmt.Appendf(nil, `{"writer":%d,"n":%d}`, writer, n)
		blob := digest.FromBytes(config).String()
		l.insist(http.MethodPost, repository+"/blobs/uploads/?digest="+blob, config, repository+"/blobs/"+blob, config)
		manifest := loadManifest([][]byte{config, config})
		l.insist(http.MethodPut, fmt.Sprintf("%s/manifests/1.0.%d", repository, n), manifest, "", manifest)
	}
}

// insist sends a request until it succeeds, and notes what is then at a path, its own if
// none is given.
func (l *restarted) insist(method, path string, body []byte, at string, want []byte) {
	for !l.t.Failed() {
		status, header, answer := l.send(method, path, body)
		if status/100 == 2 {
			break
		}
		l.refused.Add(1)
		var form struct {
			Code   registry.Code           // of a problem
			Errors []struct{ Code string } // of the protocol
		}
		err := json.Unmarshal(answer, &form)
		rest := strings.HasPrefix(path, "/api/")
		proper := err == nil && (rest && form.Code == registry.CodeUnavailable && header.Get("Content-Type") == "application/problem+json" ||
			!rest && len(form.Errors) == 1 && form.Errors[0].Code == "TOOMANYREQUESTS")
		told := bytes.Contains(answer, []byte("127.0.0.1")) || bytes.Contains(answer, []byte("postgres")) // where the database is, and as whom we go there
		if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || !proper || told {
			l.t.Errorf("%s %s: %d %v %s", method, path, status, header, answer)
			return
		}
	}
	l.acknowledged.Add(1)
	if at == "" {
		at = path
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept[at] = want
}

func (l *restarted) send(method, path string, body []byte) (int, http.Header, []byte) {
	request, err := http.NewRequestWithContext(l.t.Context(), method, l.url+path, bytes.NewReader(body))
	if err != nil {
		l.t.Error(err)
		return 0, nil, nil
	}
	if request.Header.Set("Content-Type", "application/json"); strings.Contains(path, "/manifests/") {
		request.Header.Set("Content-Type", typeLoad)
	}
	response, err := l.client.Do(request)
	if err != nil {
		l.t.Error(err)
		return 0, nil, nil
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		l.t.Error(err)
	}
	return response.StatusCode, response.Header, answer
}

// Of 32 who attach to one subject at once, through two replicas, nobody is forgotten.
func TestAttachConcurrentlyOnPostgres(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	first := onPostgres(t, server)
	second := &programtest.Service{Program: first.Program, Dir: first.Dir, Env: first.Env}
	second.MustStart(t)
	var replicas []*restarted
	for _, s := range []*programtest.Service{first, second} {
		replicas = append(replicas, &restarted{t: t, url: s.URL, client: http.DefaultClient})
	}
	const repository, n = "/v2/staging/attach", 32
	config := []byte("{}")
	if status, _, answer := replicas[0].send(http.MethodPost, repository+"/blobs/uploads/?digest="+digest.FromBytes(config).String(), config); status != http.StatusCreated {
		t.Fatalf("%d %s", status, answer)
	}
	subject := digest.FromString("subject")
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			manifest := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"application/json","digest":%q,"size":2},"layers":[],`+
				`"subject":{"mediaType":%[1]q,"digest":%[3]q,"size":1},"annotations":{"n":"%[4]d"}}`, typeLoad, digest.FromBytes(config), subject, i)
			status, header, answer := replicas[i%2].send(http.MethodPut, repository+"/manifests/"+digest.FromBytes(manifest).String(), manifest)
			if status != http.StatusCreated || header.Get("OCI-Subject") != subject.String() {
				t.Errorf("%d: %d %s", i, status, answer)
			}
		})
	}
	all.Wait()
	for _, replica := range replicas {
		_, _, answer := replica.send(http.MethodGet, repository+"/referrers/"+subject.String(), nil)
		var index struct {
			Manifests []struct{ Annotations map[string]string }
		}
		if err := json.Unmarshal(answer, &index); err != nil {
			t.Fatalf("%v: %s", err, answer)
		}
		listed := make(map[string]bool)
		for _, m := range index.Manifests {
			listed[m.Annotations["n"]] = true
		}
		if len(listed) != n {
			t.Errorf("%d are listed, want %d", len(listed), n)
		}
	}
}
