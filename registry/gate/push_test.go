package gate_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/gate"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/storage"
)

// site is a registry that inspects what is pushed. The user of a request is its caller.
type site struct {
	*httptest.Server
	parts   map[string][]byte // manifests that can be pushed, by the name of their caller
	arrived chan struct{}     // has a value for every request
}

// serve has stored the files of a part for each caller: an engine whose files all have the same bytes.
func serve(t *testing.T, look gate.Inspect, files int, callers ...string) site {
	t.Helper()
	blobs, refs := mem.NewBlobs(), mem.New()
	store := oci.New(func(context.Context, string) (oci.Repository, error) { return oci.Local(blobs, refs, repository), nil }, oci.Options{})
	s := site{parts: make(map[string][]byte), arrived: make(chan struct{}, 100)}
	for _, caller := range callers {
		var same []storage.PartFile
		for n := range files {
			f := model("weights of " + caller)
			f.Path = caller + "/" + strings.Repeat("x", n+1)
			same = append(same, f)
		}
		ref, err := store.PutPart(t.Context(), repository, engine(same...))
		if err != nil {
			t.Fatal(err)
		}
		b, size, err := blobs.Open(t.Context(), ref.Digest)
		if err != nil {
			t.Fatal(err)
		}
		s.parts[caller] = make([]byte, size)
		if _, err := b.ReadAt(s.parts[caller], 0); err != nil {
			t.Fatal(err)
		}
	}
	h, err := distribution.New(distribution.Config{
		Blobs: blobs, Refs: refs, Deleter: refs, Uploads: mem.NewUploads(blobs), Inspect: gate.New(blobs.Open, look).In(refs),
		Authorize: func(context.Context, distribution.Access) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.arrived <- struct{}{}
		name, _, _ := r.BasicAuth()
		h.ServeHTTP(w, r.WithContext(storage.WithPrincipal(r.Context(), storage.Principal{Name: name})))
	}))
	t.Cleanup(s.Close)
	return s
}

// push pushes the manifest of a caller under a tag and returns the status of the answer.
func (s site) push(t *testing.T, caller, tag string) int {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL+"/v2/"+repository+"/manifests/"+tag, bytes.NewReader(s.parts[caller]))
	if err != nil {
		t.Error(err)
		return 0
	}
	r.SetBasicAuth(caller, "")
	r.Header.Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	got, err := s.Client().Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	_ = got.Body.Close()
	return got.StatusCode
}

// A caller has one part inspected at a time: however many it pushes, another caller does not wait for them.
func TestOnePlacePerCaller(t *testing.T) {
	t.Parallel()
	begun, end := make(chan string), make(chan struct{})
	s := serve(t, func(f gate.File) error {
		caller, _, _ := strings.Cut(f.Path, "/")
		begun <- caller
		<-end
		return nil
	}, 1, "many", "one")
	done := make(chan int)
	const many = 20
	for n := range many {
		go func() { done <- s.push(t, "many", "many"+strings.Repeat("x", n)) }()
	}
	first := <-begun
	for range many {
		<-s.arrived
	}
	go func() { done <- s.push(t, "one", "one") }()
	if second := <-begun; first != "many" || second != "one" {
		t.Errorf("inspected are parts of %q and %q at the same time, want one of each caller", first, second)
	}
	close(end)
	for answered := 0; answered < many+1; {
		select {
		case status := <-done:
			answered++
			if status != http.StatusCreated {
				t.Errorf("status %d, want 201", status)
			}
		case again := <-begun:
			t.Errorf("a part of %q is inspected again, although it passed", again)
		}
	}
}

// A part with the same bytes under many names costs one inspection.
func TestSameBytesUnderManyNames(t *testing.T) {
	t.Parallel()
	seen := 0
	s := serve(t, func(gate.File) error { seen++; return nil }, 100, "ci")
	if status := s.push(t, "ci", "v1"); status != http.StatusCreated || seen != 1 {
		t.Errorf("status %d after %d inspections, want 201 after 1", status, seen)
	}
}
