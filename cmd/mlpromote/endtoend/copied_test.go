//go:build cgo

package endtoend

import (
	"bytes"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
)

// pushTo pushes a blob to a service in one request, and returns the status.
func pushTo(t *testing.T, s *programtest.Service, text string) int {
	t.Helper()
	return send(t, http.MethodPost, s.URL+"/v2/staging/copied/blobs/uploads/?digest="+string(digest.FromString(text)), []byte(text))
}

// pullFrom pulls a blob, and returns the status.
func pullFrom(t *testing.T, s *programtest.Service, text string) int {
	t.Helper()
	return send(t, http.MethodGet, s.URL+"/v2/staging/copied/blobs/"+string(digest.FromString(text)), nil)
}

func send(t *testing.T, method, url string, body []byte) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := programtest.Fresh().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Error(err)
	}
	return answer.StatusCode
}

// A replica on a copy of the directory of another one is not ready and writes nothing, while
// replicas on one directory all do.
func TestCopiedDirectory(t *testing.T) {
	t.Parallel()
	database := "MLPROMOTE_DATABASE=" + pgtest.Database(t)
	root := t.TempDir()
	one := programtest.NewService(t, programtest.Program(t), root, database)
	one.MustStart(t)
	want := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	want("a push to the original", pushTo(t, one, "first"), http.StatusCreated)

	copied := programtest.NewService(t, programtest.Program(t), t.TempDir(), database)
	if err := programtest.CopyTree(one.Dir, copied.Dir); err != nil {
		t.Fatal(err)
	}
	copied.MustStart(t)
	want("readiness of the copy", send(t, http.MethodGet, copied.URL+"/readyz", nil), http.StatusServiceUnavailable)
	want("a push to the copy", pushTo(t, copied, "second"), http.StatusServiceUnavailable)
	want("a pull from the copy", pullFrom(t, copied, "first"), http.StatusOK)
	if left, err := filepath.Glob(filepath.Join(copied.Dir, "blobs", "*", "*", digest.FromString("second").Encoded())); err != nil || len(left) > 0 {
		t.Errorf("the copy stored %v (%v), want nothing", left, err)
	}
	want("readiness of the original", send(t, http.MethodGet, one.URL+"/readyz", nil), http.StatusNoContent)
	want("a push to the original", pushTo(t, one, "third"), http.StatusCreated)

	two := programtest.NewService(t, programtest.Program(t), root, database)
	two.MustStart(t)
	want("readiness of another replica on the directory", send(t, http.MethodGet, two.URL+"/readyz", nil), http.StatusNoContent)
	want("a push to it", pushTo(t, two, "fourth"), http.StatusCreated)
	want("a pull from the original", pullFrom(t, one, "fourth"), http.StatusOK)
}
