package telemetry

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// New creates the metrics of a program with the given version. A nil provider disables traces.
func New(version string, provider trace.TracerProvider) *Telemetry {
	traces := provider != nil
	if !traces {
		provider = noop.NewTracerProvider()
	}
	t := &Telemetry{registry: prometheus.NewRegistry(), traces: traces, disk: newDisk(), tracer: provider.Tracer("mlpromote.dev/mlpromote/registry")}
	t.define()
	t.startAtZero()
	t.registry.MustRegister(
		t.disk,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "mlpromote_build_info", Help: "Always 1; the version is a label.",
			ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
		}, func() float64 { return 1 }))
	return t
}
