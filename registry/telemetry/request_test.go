package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/requestid"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/telemetry"
)

// desk is a handler that is observed, its log and its traces.
type desk struct {
	*telemetry.Telemetry
	http.Handler
	log   bytes.Buffer
	spans *tracetest.SpanRecorder
}

func newDesk(t *testing.T, level string, next http.HandlerFunc) *desk {
	t.Helper()
	d := &desk{spans: tracetest.NewSpanRecorder()}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(d.spans))
	d.Telemetry = telemetry.New("0.0.0", provider)
	logger, err := telemetry.NewLogger(&d.log, "json", level)
	if err != nil {
		t.Fatal(err)
	}
	routes := telemetry.NewRoutes("/v2/{name}/blobs/uploads/{id}", "/v2/{name}/blobs/{digest}", "/v2/{name}/manifests/{reference}", "/healthz")
	d.Handler = d.Requests(next, routes, logger)
	return d
}

// line is a line of the log.
type line struct {
	Level, Msg, Request, Method, Path, Principal, Digest, From, Trace string
	Status                                                            int
	Bytes, Received                                                   int64
	Duration                                                          float64 // in seconds
}

func (d *desk) lines(t *testing.T) []line {
	t.Helper()
	var all []line
	for text := range strings.Lines(d.log.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		all = append(all, l)
	}
	return all
}

func TestRequests(t *testing.T) {
	t.Parallel()
	blob := digest.FromString("blob").String()
	var seen []string
	d := newDesk(t, "info", func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, requestid.Of(r.Context()))
		switch r.Method {
		case http.MethodPatch:
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusAccepted)
		case http.MethodPut:
			w.Header().Set("Docker-Content-Digest", digest.FromString("manifest").String())
			w.WriteHeader(http.StatusCreated)
		case http.MethodHead:
		case http.MethodDelete:
			panic(http.ErrAbortHandler)
		case "BREW":
			w.WriteHeader(http.StatusTeapot)
		default:
			_, _ = w.Write([]byte("content"))
		}
	})
	serve := func(method, path, body string, header ...string) *httptest.ResponseRecorder {
		t.Helper()
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		recorder := httptest.NewRecorder()
		defer func() { _ = recover() }()
		d.ServeHTTP(recorder, r)
		return recorder
	}
	serve("GET", "/v2/a/b/blobs/"+blob, "", "X-Request-Id", "mine-1", "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	serve("PATCH", "/v2/a/blobs/uploads/1234", "twelve bytes")
	serve("PUT", "/v2/a/manifests/1.0.0", "{}")
	serve("HEAD", "/healthz", "")
	serve("DELETE", "/v2/a/manifests/1.0.0", "")
	got := serve("BREW", "/elsewhere/"+strings.Repeat("x", 100), "", "X-Request-Id", "not one\tword")

	want(t, d.Telemetry, map[string]float64{
		`mlpromote_http_requests_total{code="200",method="GET",route="/v2/{name}/blobs/{digest}"}`:         1,
		`mlpromote_http_requests_total{code="202",method="PATCH",route="/v2/{name}/blobs/uploads/{id}"}`:   1,
		`mlpromote_http_requests_total{code="201",method="PUT",route="/v2/{name}/manifests/{reference}"}`:  1,
		`mlpromote_http_requests_total{code="200",method="HEAD",route="/healthz"}`:                         1,
		`mlpromote_http_requests_total{code="0",method="DELETE",route="/v2/{name}/manifests/{reference}"}`: 1,
		`mlpromote_http_requests_total{code="418",method="OTHER",route="other"}`:                           1,
		`mlpromote_http_request_duration_seconds_count{method="GET",route="/v2/{name}/blobs/{digest}"}`:    1,
		`mlpromote_blob_bytes_total{direction="pulled"}`:                                                   7,
		`mlpromote_blob_bytes_total{direction="pushed"}`:                                                   12,
		`mlpromote_http_requests_in_flight`:                                                                0,
		`mlpromote_uploads_in_flight`:                                                                      0,
	})
	lines := d.lines(t)
	if len(lines) != 5 {
		t.Fatalf("%d lines, want one for each request but the probe:\n%s", len(lines), d.log.String())
	}
	first := lines[0]
	if first.Duration <= 0 || first.Duration > 60 || first.From == "" || first.Msg != "request" {
		t.Errorf("%+v", first)
	}
	first.Duration, first.From = 0, ""
	if wanted := (line{Level: "INFO", Msg: "request", Request: "mine-1", Method: "GET", Path: "/v2/a/b/blobs/" + blob,
		Digest: blob, Status: 200, Bytes: 7, Trace: "0af7651916cd43dd8448eb211c80319c"}); first != wanted {
		t.Errorf("got %+v, want %+v", first, wanted)
	}
	if lines[1].Received != 12 || lines[2].Digest != digest.FromString("manifest").String() || lines[3].Status != 0 {
		t.Errorf("got %+v", lines)
	}
	if id := got.Header().Get("X-Request-Id"); !regexp.MustCompile(`^[A-Z2-7]{26}$`).MatchString(id) ||
		lines[4].Request != id || seen[5] != id || seen[0] != "mine-1" {
		t.Errorf("the request is called %q, in the log %q, inside %q", id, lines[4].Request, seen)
	}
	spans := d.spans.Ended()
	if len(spans) != 6 || spans[0].Name() != "GET /v2/{name}/blobs/{digest}" || spans[0].Parent().SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("spans: %v", spans)
	}
}

// At another level nothing is written for requests, and probes are for those who debug.
func TestLogLevel(t *testing.T) {
	t.Parallel()
	for level, lines := range map[string]int{"debug": 2, "info": 1, "warn": 0, "error": 0} {
		d := newDesk(t, level, func(http.ResponseWriter, *http.Request) {})
		for _, path := range []string{"/healthz", "/v2/"} {
			d.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
		}
		if got := len(d.lines(t)); got != lines {
			t.Errorf("%s: %d lines, want %d", level, got, lines)
		}
	}
}

// Nothing that can be a secret is written anywhere.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "debug", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
		w.Header().Set("Set-Cookie", "hunter2")
	})
	r := httptest.NewRequest(http.MethodPost, "http://user:hunter2@localhost/v2/?token=hunter2&digest=hunter2#hunter2", strings.NewReader("hunter2"))
	for _, name := range []string{"Authorization", "Cookie", "X-Api-Key", "User-Agent", "Referer", "X-Forwarded-For"} {
		r.Header.Set(name, "hunter2")
	}
	d.ServeHTTP(httptest.NewRecorder(), r)
	var told bytes.Buffer
	told.WriteString(d.log.String())
	for _, span := range d.spans.Ended() {
		for _, a := range span.Attributes() {
			told.WriteString(a.Value.String() + " ")
		}
		told.WriteString(span.Name())
	}
	recorder := httptest.NewRecorder()
	d.Telemetry.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	told.Write(recorder.Body.Bytes())
	if !strings.Contains(told.String(), "/v2/") || strings.Contains(told.String(), "hunter2") {
		t.Errorf("a secret was written, or nothing at all: %s", told.String())
	}
}

// Who asks is known inside, and told outside.
func TestIdentified(t *testing.T) {
	t.Parallel()
	inside := telemetry.Identified(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	d := newDesk(t, "info", func(w http.ResponseWriter, r *http.Request) {
		inside.ServeHTTP(w, r.WithContext(storage.WithPrincipal(r.Context(), storage.Principal{Name: "token:ci"})))
	})
	d.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v2/", nil))
	inside.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v2/", nil)) // and nobody is asked outside
	if l := d.lines(t); len(l) != 1 || l[0].Principal != "token:ci" {
		t.Errorf("got %+v, want the principal", l)
	}
}

// fileWriter is a response that notes what the kernel would be given to copy.
type fileWriter struct {
	*httptest.ResponseRecorder
	files int
}

func (w *fileWriter) ReadFrom(r io.Reader) (int64, error) {
	if limited, ok := r.(*io.LimitedReader); ok {
		if _, ok := limited.R.(*os.File); ok {
			w.files++
		}
	}
	return io.Copy(w.ResponseRecorder, r)
}

// A file goes to the socket without passing here, and is counted all the same.
func TestRequestsKeepReadFrom(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "blob")
	if err := os.WriteFile(path, make([]byte, 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newDesk(t, "info", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) })
	w := &fileWriter{ResponseRecorder: httptest.NewRecorder()}
	d.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v2/a/blobs/"+digest.FromString("x").String(), nil))
	if w.files != 1 || w.Body.Len() != 100_000 {
		t.Errorf("%d files of %d bytes went by way of ReadFrom", w.files, w.Body.Len())
	}
	want(t, d.Telemetry, map[string]float64{`mlpromote_blob_bytes_total{direction="pulled"}`: 100_000})
}

// Deadlines and flushes get through to the connection.
func TestRequestsKeepController(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "info", func(w http.ResponseWriter, _ *http.Request) {
		control := http.NewResponseController(w)
		if err := errors.Join(control.SetReadDeadline(time.Now().Add(time.Minute)),
			control.SetWriteDeadline(time.Now().Add(time.Minute)), control.Flush()); err != nil {
			t.Error(err)
		}
		w.(http.Flusher).Flush()
	})
	server := httptest.NewServer(d)
	defer server.Close()
	response, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	routes := telemetry.NewRoutes("/v2/", "/v2/{name}/blobs/uploads/",
		"/v2/{name}/blobs/uploads/{id}", "/v2/{name}/blobs/{digest}", "/v2/{name}/tags/list",
		"/api/v1/heads", "/api/v1/promotions/{seq}", "/api/v1/node-types/{name}",
		"/api/v1/models/{model}/releases/{digest}", "/api/v1/models/{model}/resolve")
	for path, want := range map[string]string{
		"/v2/": "/v2/", "/v2": "other", "/": "other", "": "other",
		"/v2/a/b/blobs/uploads/":             "/v2/{name}/blobs/uploads/",
		"/v2/a/blobs/uploads/1":              "/v2/{name}/blobs/uploads/{id}",
		"/v2/a/blobs/uploads/blobs/x":        "/v2/{name}/blobs/{digest}",
		"/v2/blobs/sha256:1":                 "other",
		"/v2/a/tags/list":                    "/v2/{name}/tags/list",
		"/v2/tags/list/tags/list":            "/v2/{name}/tags/list",
		"/v2/a/tags/list/":                   "other",
		"/v2//tags/list":                     "other",
		"/api/v1/heads":                      "/api/v1/heads",
		"/api/v1/heads/x":                    "other",
		"/api/v1/promotions/7":               "/api/v1/promotions/{seq}",
		"/api/v1/promotions/":                "other",
		"/api/v1/promotions/7/8":             "other",
		"/api/v1/node-types/a/b":             "/api/v1/node-types/{name}",
		"/api/v1/models/a/b/releases/c":      "/api/v1/models/{model}/releases/{digest}",
		"/api/v1/models/resolve/resolve":     "/api/v1/models/{model}/resolve",
		"/api/v1/models/resolve":             "other",
		"/api/v1/models/a/b/releases/":       "other",
		"/api/v1/models/a/resolve/elsewhere": "other",
	} {
		if got := routes.Of(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// Lines that name their request themselves are not given another name.
func TestLoggerNames(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "info", nil)
	logger, err := telemetry.NewLogger(&d.log, "text", "info")
	if err != nil {
		t.Fatal(err)
	}
	handler := d.Requests(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		logger.InfoContext(r.Context(), "one")
		logger.With("k", "v").InfoContext(r.Context(), "two", "request", "its-own")
		logger.InfoContext(context.Background(), "three")
	}), telemetry.NewRoutes(), slog.New(slog.DiscardHandler))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Request-Id", "mine")
	handler.ServeHTTP(httptest.NewRecorder(), r)
	if got := regexp.MustCompile(`(time|trace)=\S+ ?`).ReplaceAllString(d.log.String(),
		""); got != "level=INFO msg=one request=mine \nlevel=INFO msg=two k=v request=its-own\nlevel=INFO msg=three\n" {
		t.Errorf("got\n%s", got)
	}
	for _, bad := range [][2]string{{"xml", "info"}, {"text", "loud"}, {"", ""}} {
		if _, err := telemetry.NewLogger(io.Discard, bad[0], bad[1]); registry.CodeOf(err) != registry.CodeInvalid || err == nil {
			t.Errorf("%q: %v, want CodeInvalid", bad, err)
		}
	}
}

// Durations are numbers of seconds in JSON, and readable in text.
func TestDurations(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{"json": `"duration":1.5`, "text": "duration=1.5s"} {
		var log bytes.Buffer
		logger, err := telemetry.NewLogger(&log, format, "info")
		if err != nil {
			t.Fatal(err)
		}
		logger.Info("done", "duration", 1500*time.Millisecond)
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s: got %s, want %s in it", format, log.String(), want)
		}
	}
}
