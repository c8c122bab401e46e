//go:build !cgo

package ort_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
)

// Without cgo the child says so, in the protocol's own words.
func TestMainWithoutCgo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "response")
	request, err := json.Marshal(driverproc.Request{Protocol: driverproc.Protocol, ID: "1", ResponsePath: path})
	if err != nil {
		t.Fatal(err)
	}
	if status := ort.Main(t.Context(), strings.NewReader(string(request)), io.Discard); status != 1 {
		t.Errorf("status %d, want 1", status)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), `"code":"unavailable"`) {
		t.Errorf("response %s (%v), want unavailable", text, err)
	}
}
