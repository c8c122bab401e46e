//go:build cgo

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/environments"
)

// A service makes checkpoints by itself. After a restart it knows those that it keeps.
func TestServeMakesCheckpoints(t *testing.T) {
	t.Parallel()
	s := programtest.Serve(t, fastProgram(t), "listen: 127.0.0.1:0\nreload_interval: 50ms\ncheckpoint_events: 1\n")
	change := append(environments.Default(), "# a comment\n"...)
	if err := os.WriteFile(filepath.Join(s.Dir, environments.File), change, 0o600); err != nil {
		t.Fatal(err)
	}
	kept := func() string {
		_, body := programtest.Send(t, programtest.Fresh(), http.MethodGet, s.URL+"/api/v1/history/checkpoints")
		return string(body)
	}
	programtest.Eventually(t, "a checkpoint of the first event", func() bool { return strings.HasPrefix(kept(), `[{"size":1,"note":"mlpromote.dev/history/local/`) })
	before := kept()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	s.MustStart(t)
	if after := kept(); after != before {
		t.Errorf("after a restart the service keeps %s, want %s", after, before)
	}
}
