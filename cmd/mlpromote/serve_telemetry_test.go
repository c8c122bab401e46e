//go:build cgo

package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/serving"
	"mlpromote.dev/mlpromote/registry/host"
)

// TestServeTelemetry looks at what a service tells: metrics, a line for each request, and
// traces to a collector.
func TestServeTelemetry(t *testing.T) {
	t.Parallel()
	var traces atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/v1/traces" {
			traces.Add(n)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer collector.Close()
	s := programtest.Serve(t, fastProgram(t), "listen: 127.0.0.1:0\ngc_interval: 1s\nlog_format: json\n")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	s.Env = append(s.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	d := digest.FromString("content").String()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		s.URL+"/v2/staging/digits/blobs/uploads/?digest="+d, strings.NewReader("content"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Request-Id", "push-1")
	response, err := programtest.Fresh().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	programtest.Send(t, programtest.Fresh(), http.MethodGet, s.URL+"/v2/staging/digits/blobs/"+d)
	var metrics string
	programtest.Eventually(t, "a collection is counted", func() bool {
		_, body := programtest.Send(t, programtest.Fresh(), http.MethodGet, s.URL+"/metrics")
		metrics = string(body)
		return strings.Contains(metrics, `mlpromote_gc_runs_total{result="success"}`)
	})
	for _, line := range []string{
		`mlpromote_http_requests_total{code="201",method="POST",route="/v2/{name}/blobs/uploads/"} 1`,
		`mlpromote_http_requests_total{code="200",method="GET",route="/v2/{name}/blobs/{digest}"} 1`,
		`mlpromote_blob_bytes_total{direction="pulled"} 7`, `mlpromote_blob_bytes_total{direction="pushed"} 7`,
		`mlpromote_uploads_in_flight 0`, `mlpromote_database_duration_seconds_count{operation="add_blob"} 1`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("/metrics has no line %s", line)
		}
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if traces.Load() == 0 {
		t.Error("no traces came to the collector")
	}
	pushed := false
	for line := range strings.Lines(s.Said()) {
		var l struct{ Msg, Request, Digest, Time string }
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Msg == "" {
			t.Errorf("a line of the log is no JSON: %s", line)
		}
		pushed = pushed || l.Msg == "request" && l.Request == "push-1" && l.Digest == d
	}
	if !pushed {
		t.Errorf("the log has no line for the push:\n%s", s.Said())
	}
}

// TestMetricsListen has metrics at an address of their own, and nowhere else.
func TestMetricsListen(t *testing.T) {
	t.Parallel()
	taken, err := host.Listen(t.Context(), "127.0.0.1:0") // so that nobody else gets the port meanwhile
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	s := programtest.Serve(t, fastProgram(t), "listen: 127.0.0.1:0\n")
	if err := errors.Join(s.Stop(), os.WriteFile(filepath.Join(s.Dir, serving.ConfigFile),
		[]byte("listen: 127.0.0.1:0\nmetrics_listen: "+address+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err == nil || !strings.Contains(s.Said(), "listen on "+address) {
		t.Fatalf("serve with an address that is taken: %v\n%s", err, s.Said())
	}
	if err := errors.Join(taken.Close(), s.Start()); err != nil {
		t.Fatal(err)
	}
	if response, body := programtest.Send(t, programtest.Fresh(), http.MethodGet,
		"http://"+address+"/metrics"); response.StatusCode != http.StatusOK || !strings.Contains(string(body), "mlpromote_build_info") {
		t.Errorf("/metrics: %s", response.Status)
	}
	for _, elsewhere := range []string{s.URL + "/metrics", "http://" + address + "/v2/"} {
		if response, _ := programtest.Send(t, programtest.Fresh(), http.MethodGet, elsewhere); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s, want 404", elsewhere, response.Status)
		}
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
}
