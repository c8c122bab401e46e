package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/sqlite"
)

// dock is a registry on the network that clients push to while two collectors, which know
// nothing of each other, are at work on its data directory.
type dock struct {
	t     *testing.T
	url   string
	days  atomic.Int64 // that have passed
	shift sync.RWMutex // read: a client is at something that takes less than a grace
	gone  atomic.Int64 // blobs that were collected
	made  atomic.Int64 // pushes that relied on what was there
}

const dockRepository = "staging/vision/digits"

func newDock(t *testing.T) (d *dock, collectors [2]*gc.Collector) {
	t.Helper()
	d = &dock{t: t}
	path := t.TempDir()
	dir := blob.NewDir(path)
	open := func() *sqlite.DB {
		db, err := sqlite.Open(t.Context(), filepath.Join(path, "registry.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		db.Now = func() time.Time { return time.Now().AddDate(0, 0, int(d.days.Load())) }
		return db
	}
	db := open()
	safe := gc.SafeStore{Garbage: db, Remover: dir}
	handler, err := distribution.New(distribution.Config{
		Blobs: safe.Blobs(dir), Uploads: safe.Uploads(blob.NewUploads(dir, db)), Refs: safe.Refs(db, dir), Deleter: db,
		Authorize: func(context.Context, distribution.Access) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	d.url = server.URL + "/v2/" + dockRepository
	for i := range collectors {
		other, same := open(), blob.NewDir(path) // as another process would
		collectors[i], err = gc.New(gc.Config{
			Store: other, Catalog: other, Intents: other, Blobs: same, Remover: same, Garbage: other, Clock: other,
			Owner: registrytest.Owned{}, Lock: other,
			Retention: gc.DefaultRetention(),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return d, collectors
}

func (d *dock) do(method, path string, body []byte, header ...string) (status int, content []byte) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, bytes.NewReader(body))
	if err != nil {
		d.t.Error(err)
		return 0, nil
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Error(err)
		return 0, nil
	}
	defer response.Body.Close()
	content, err = io.ReadAll(response.Body)
	if err != nil {
		d.t.Error(err)
	}
	return response.StatusCode, content
}

// want does a request that must succeed.
func (d *dock) want(status int, method, path string, body []byte, header ...string) {
	d.t.Helper()
	if got, content := d.do(method, path, body, header...); got != status {
		d.t.Errorf("%s %s: status %d, want %d: %s", method, path, got, status, content)
	}
}

// descriptor names content.
type descriptor struct {
	MediaType string          `json:"mediaType"`
	Digest    registry.Digest `json:"digest"`
	Size      int             `json:"size"`
}

// image is a manifest, or an index where it has manifests.
type image struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        *descriptor  `json:"config,omitempty"`
	Layers        []descriptor `json:"layers,omitempty"`
	Manifests     []descriptor `json:"manifests,omitempty"`
}

// there asks whether content is there, as a client does before it relies on that.
func (d *dock) there(path string) bool {
	d.t.Helper()
	status, _ := d.do(http.MethodHead, path, nil)
	if status != http.StatusOK && status != http.StatusNotFound {
		d.t.Errorf("HEAD %s: status %d", path, status)
	}
	if status == http.StatusOK {
		d.made.Add(1)
	}
	return status == http.StatusOK
}

// push pushes a document that needs what is there already.
func (d *dock) push(document image, name string) descriptor {
	d.t.Helper()
	raw, err := json.Marshal(document)
	if err != nil {
		d.t.Error(err)
	}
	at := descriptor{document.MediaType, digest.FromBytes(raw), len(raw)}
	if name == "" && d.there("/manifests/"+string(at.Digest)) {
		return at
	}
	for _, layer := range document.Layers {
		if !d.there("/blobs/" + string(layer.Digest)) {
			d.want(http.StatusCreated, http.MethodPost, "/blobs/uploads/?digest="+string(layer.Digest),
				pool()[layer.Digest], "Content-Type", "application/octet-stream")
		}
	}
	if name == "" {
		name = string(at.Digest)
	}
	d.want(http.StatusCreated, http.MethodPut, "/manifests/"+name, raw, "Content-Type", document.MediaType)
	return at
}

// pool is all contents that clients push.
func pool() map[registry.Digest][]byte {
	all := make(map[registry.Digest][]byte)
	for i := range 6 {
		content := fmt.Appendf(nil, "content %d", i)
		all[digest.FromBytes(content)] = content
	}
	return all
}

// relies is a client that pushes what it hears is not there yet, and an index of it, and
// pulls it again. Some time later somebody deletes the index, so that all is garbage again.
func (d *dock) relies(random *rand.Rand) {
	d.shift.RLock()
	defer d.shift.RUnlock()
	m := image{SchemaVersion: 2, MediaType: "application/vnd.oci.image.manifest.v1+json"}
	for at := range pool() { // in a random order
		layer := descriptor{"application/octet-stream", at, len(pool()[at])}
		m.Config, m.Layers = &layer, append(m.Layers, layer)
		if len(m.Layers) == 2 {
			break
		}
	}
	slices.SortFunc(m.Layers, func(a, b descriptor) int { return strings.Compare(string(a.Digest), string(b.Digest)) })
	m.Config = &m.Layers[0]
	index := image{SchemaVersion: 2, MediaType: "application/vnd.oci.image.index.v1+json", Manifests: []descriptor{d.push(m, "")}}
	tag := fmt.Sprint("tag-", random.IntN(3))
	d.push(index, tag)
	for _, layer := range m.Layers {
		status, content := d.do(http.MethodGet, "/blobs/"+string(layer.Digest), nil)
		if status != http.StatusOK || digest.FromBytes(content) != layer.Digest {
			d.t.Errorf("pull of %s: status %d: %s", layer.Digest, status, content)
		}
	}
	if random.IntN(2) == 0 { // another client's tag may name it by now, so that it may be gone
		_, _ = d.do(http.MethodDelete, "/manifests/"+tag, nil)
	}
}

// Whoever was told by HEAD that something is there can push a manifest that needs it and
// pull all of it, while two collectors take away whatever nobody needs or asked for.
func TestPushWhileCollecting(t *testing.T) {
	t.Parallel()
	d, collectors := newDock(t)
	var clients, collecting sync.WaitGroup
	stop := make(chan struct{})
	for _, c := range collectors {
		collecting.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				did, err := c.Collect(t.Context())
				if err != nil || len(did.SkippedRepositories) > 0 {
					t.Errorf("collect: %+v, %v", did, err)
					return
				}
				d.gone.Add(int64(did.Blobs))
				d.shift.Lock() // no client relies on what it heard two days ago
				d.days.Add(2)
				d.shift.Unlock()
			}
		})
	}
	for i := range 4 {
		random := rand.New(rand.NewPCG(uint64(i), 1))
		clients.Go(func() {
			for range 25 {
				d.relies(random)
			}
		})
	}
	clients.Wait()
	close(stop)
	collecting.Wait()
	t.Logf("%d blobs were collected, %d were relied on", d.gone.Load(), d.made.Load())
	if d.gone.Load() == 0 || d.made.Load() == 0 {
		t.Error("nothing was collected, or nothing relied on: the test tests nothing")
	}
}
