//go:build cgo

package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// TestServeDamage changes bytes under a service: nobody is given them whole, the scrubber finds
// what nobody asked for, and metrics, readiness and the log say so until it is repaired.
func TestServeDamage(t *testing.T) {
	t.Parallel()
	s := programtest.Serve(t, fastProgram(t), "listen: 127.0.0.1:0\nscrub_interval: 1s\nscrub_rate: 0\n")
	asked, left := bytes.Repeat([]byte("asked for "), 1<<17), bytes.Repeat([]byte("left alone "), 1<<10)
	for _, content := range [][]byte{asked, left} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			s.URL+"/v2/staging/digits/blobs/uploads/?digest="+digest.FromBytes(content).String(), bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil || response.StatusCode != http.StatusCreated {
			t.Fatalf("push: got %v, error %v, want 201", response, err)
		}
		_ = response.Body.Close()
	}
	change := func(content []byte) {
		t.Helper()
		hex := digest.FromBytes(content).Encoded()
		path := filepath.Join(s.Dir, "blobs", "sha256", hex[:2], hex)
		changed := bytes.Clone(content)
		changed[len(changed)/2] ^= 1
		if stored, err := os.ReadFile(path); err != nil || bytes.Equal(stored, changed) {
			changed = content // the second time
		}
		if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, changed, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	pull := func() error {
		response, err := http.DefaultClient.Get(s.URL + "/v2/staging/digits/blobs/" + digest.FromBytes(asked).String())
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	damaged := func(want string) {
		t.Helper()
		programtest.Eventually(t, "the service knows of "+want+" damaged pieces", func() bool {
			_, metrics := programtest.Send(t, programtest.Fresh(), http.MethodGet, s.URL+"/metrics")
			return strings.Contains(string(metrics), "mlpromote_scrub_damaged_blobs "+want+"\n")
		})
	}
	if err := pull(); err != nil {
		t.Fatal(err)
	}
	change(asked)
	change(left)
	if pull() == nil {
		t.Error("changed bytes were sent whole")
	}
	damaged("2")
	if answer, body := programtest.Send(t, programtest.Fresh(), http.MethodGet, s.URL+"/readyz"); answer.StatusCode != http.StatusOK ||
		!strings.Contains(string(body), "stored content is damaged") {
		t.Errorf("/readyz: got %s %q, want 200 and that content is damaged", answer.Status, body)
	}
	change(asked)
	change(left)
	damaged("0")
	if err := pull(); err != nil {
		t.Errorf("repaired: %v", err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"content is damaged", "content is not damaged any more", "scrubbed", digest.FromBytes(left).String()} {
		if !strings.Contains(s.Said(), line) {
			t.Errorf("the log has no line with %q:\n%s", line, s.Said())
		}
	}
}
