//go:build cgo

package endtoend

import (
	"bytes"
	"crypto/sha256"
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
)

// TestLoad lets many clients pull one artifact while others push theirs, all at once, with
// collections in between. Nobody sees an error or a wrong byte. MLPROMOTE_SOAK asks for 500
// pulls and 50 pushes at a time, and ten rounds.
func TestLoad(t *testing.T) {
	t.Parallel()
	pulls, pushes, rounds := 100, 10, 1
	if os.Getenv("MLPROMOTE_SOAK") != "" {
		pulls, pushes, rounds = 500, 50, 10
	}
	s := programtest.Serve(t, programtest.Program(t), "listen: 127.0.0.1:0\ngc_interval: 1s\n")
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: pulls + pushes}}
	l := &load{t: t, url: s.URL + "/v2/staging/load", client: client}
	shared := l.artifact(0)
	l.push(shared, "shared")
	var next atomic.Uint64
	for range rounds {
		var wg sync.WaitGroup
		for range pulls {
			wg.Go(func() { l.pull(shared, "shared") })
		}
		for range pushes {
			wg.Go(func() {
				n := next.Add(1)
				own := l.artifact(n)
				l.push(own, fmt.Sprint("own-", n))
				l.pull(own, fmt.Sprint("own-", n))
			})
		}
		wg.Wait()
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if log := s.Said(); strings.Contains(log, "error") {
		t.Errorf("the service says:\n%.2000s", log)
	}
}

// load is clients of one repository.
type load struct {
	t      *testing.T
	url    string
	client *http.Client
}

// artifact is some blobs of which each number has its own.
func (l *load) artifact(n uint64) [][]byte {
	random := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)})
	var blobs [][]byte
	for _, size := range []int{2, 10_000, 3 << 20} {
		content := make([]byte, size)
		_, _ = random.Read(content) // never fails
		blobs = append(blobs, content)
	}
	return blobs
}

// do wants a status.
func (l *load) do(want int, method, path, mediaType string, body []byte) (http.Header, []byte) {
	l.t.Helper()
	if !strings.HasPrefix(path, "/v2/") {
		path = l.url + path
	} else {
		path = l.url[:strings.Index(l.url, "/v2/")] + path
	}
	request, err := http.NewRequestWithContext(l.t.Context(), method, path, bytes.NewReader(body))
	if err != nil {
		l.t.Error(err)
		return nil, nil
	}
	request.Header.Set("Content-Type", mediaType)
	response, err := l.client.Do(request)
	if err != nil {
		l.t.Error(err)
		return nil, nil
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != want {
		l.t.Errorf("%s %s: %s, %v: %.200s", method, path, response.Status, err, content)
	}
	return response.Header, content
}

// loadManifest is that of blobs, the first of which is the config.
func loadManifest(blobs [][]byte) []byte {
	type descriptor struct {
		MediaType string        `json:"mediaType"`
		Digest    digest.Digest `json:"digest"`
		Size      int           `json:"size"`
	}
	var all []descriptor
	for _, b := range blobs {
		all = append(all, descriptor{"application/octet-stream", digest.FromBytes(b), len(b)})
	}
	raw, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": typeLoad, "config": all[0], "layers": all[1:]})
	if err != nil {
		panic(err) // it is made of strings and numbers
	}
	return raw
}

const typeLoad = "application/vnd.oci.image.manifest.v1+json"

// push uploads blobs in two chunks each, and then their manifest.
func (l *load) push(blobs [][]byte, tag string) {
	l.t.Helper()
	for _, b := range blobs {
		header, _ := l.do(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", nil)
		header, _ = l.do(http.StatusAccepted, http.MethodPatch, header.Get("Location"), "application/octet-stream", b[:len(b)/2])
		l.do(http.StatusCreated, http.MethodPut, header.Get("Location")+"?digest="+digest.FromBytes(b).String(), "application/octet-stream", b[len(b)/2:])
	}
	l.do(http.StatusCreated, http.MethodPut, "/manifests/"+tag, typeLoad, loadManifest(blobs))
}

// pull reads all of an artifact and compares.
func (l *load) pull(blobs [][]byte, tag string) {
	l.t.Helper()
	if _, got := l.do(http.StatusOK, http.MethodGet, "/manifests/"+tag, "", nil); !bytes.Equal(got, loadManifest(blobs)) {
		l.t.Errorf("%s: another manifest: %.200s", tag, got)
	}
	for _, b := range blobs {
		if _, got := l.do(http.StatusOK, http.MethodGet, "/blobs/"+digest.FromBytes(b).String(), "", nil); sha256.Sum256(got) != sha256.Sum256(b) {
			l.t.Errorf("%s: %d bytes that are not the %d that were pushed", tag, len(got), len(b))
		}
	}
}
