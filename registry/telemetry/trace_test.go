package telemetry_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/telemetry"
)

// TestTracing sends traces to a collector on this machine. It is not parallel, since the
// exporter reads the environment of the process.
func TestTracing(t *testing.T) {
	var mu sync.Mutex
	names := make(map[string]string) // of spans, with their services
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var request collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &request); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("POST %s: %v", r.URL.Path, err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, of := range request.GetResourceSpans() {
			for _, scope := range of.GetScopeSpans() {
				for _, span := range scope.GetSpans() {
					for _, a := range of.GetResource().GetAttributes() {
						if a.GetKey() == "service.name" {
							names[span.GetName()] = a.GetValue().GetStringValue()
						}
					}
				}
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	provider, err := telemetry.NewTracing(t.Context(), "0.0.0")
	if err != nil {
		t.Fatal(err)
	}
	w := setup(t)
	w.telemetry = telemetry.New("0.0.0", provider)
	w.Interface = w.telemetry.Registry(w.Interface)
	w.Promoted(t, registrytest.Build{})
	_, _ = w.Resolve(t.Context(), api.ResolveQuery{Environment: "prod", Model: registrytest.Model, Node: registrytest.Node("v3")})
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"publish", "attach", "promote", "resolve"} {
		if names[name] != "mlpromote" {
			t.Errorf("no span %q of mlpromote came: %v", name, names)
		}
	}
}
