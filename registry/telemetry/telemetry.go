package telemetry

import (
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Telemetry is the metrics of one service, and its tracer. Make one with [New]; it is safe
// for concurrent use.
type Telemetry struct {
	registry *prometheus.Registry
	tracer   trace.Tracer

	requests    *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
	inFlight    prometheus.Gauge
	blobBytes   *prometheus.CounterVec
	uploads     prometheus.Gauge
	promotions  *prometheus.CounterVec
	rollbacks   *prometheus.CounterVec
	refusals    *prometheus.CounterVec
	resolves    *prometheus.CounterVec
	attachments *prometheus.CounterVec
	database    *prometheus.HistogramVec
	certificate *prometheus.GaugeVec
	refused     *prometheus.GaugeVec
	gc          collections

	scrub         scrubs
	historyFaults *prometheus.GaugeVec
	configuration *prometheus.GaugeVec
	reloads       *prometheus.CounterVec
}

// collections is the metrics of collections.
type collections struct {
	runs, removed, marked *prometheus.CounterVec
	bytes                 prometheus.Counter
	seconds               prometheus.Histogram
	last                  prometheus.Gauge
	skipped               prometheus.Gauge
}

// New makes the metrics of a program of this version. A nil provider traces nothing.
func New(version string, provider trace.TracerProvider) *Telemetry {
	if provider == nil {
		provider = noop.NewTracerProvider()
	}
	t := &Telemetry{registry: prometheus.NewRegistry(), tracer: provider.Tracer("mlpromote.dev/mlpromote/registry")}
	t.define()
	t.startAtZero()
	t.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "mlpromote_build_info", Help: "1, with the version as a label.",
			ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
		}, func() float64 { return 1 }))
	return t
}

// Handler answers Prometheus.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Registry: t.registry})
}
