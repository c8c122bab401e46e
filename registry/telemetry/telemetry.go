package telemetry

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/trace"
)

// Telemetry has the metrics and the tracer of one service. Create one with [New]. It is safe
// for concurrent use.
type Telemetry struct {
	registry *prometheus.Registry
	tracer   trace.Tracer
	traces   bool // there is somebody to send traces to

	requests    *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
	inFlight    prometheus.Gauge
	blobBytes   *prometheus.CounterVec
	uploads     prometheus.Gauge
	promotions  *prometheus.CounterVec
	breakGlass  prometheus.Counter
	rollbacks   *prometheus.CounterVec
	refusals    *prometheus.CounterVec
	resolves    *prometheus.CounterVec
	attachments *prometheus.CounterVec
	database    *prometheus.HistogramVec
	certificate *prometheus.GaugeVec
	refused     *prometheus.GaugeVec
	gc          collections
	disk        *disk

	scrub         scrubs
	historyFaults *prometheus.GaugeVec
	relisted      *prometheus.CounterVec
	configuration *prometheus.GaugeVec
	reloads       *prometheus.CounterVec
}

// collections are the metrics of garbage collection.
type collections struct {
	runs, removed, marked *prometheus.CounterVec
	bytes                 prometheus.Counter
	seconds               prometheus.Histogram
	last                  prometheus.Gauge
	skipped               prometheus.Gauge
}

// Handler serves the metrics to Prometheus.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Registry: t.registry})
}

// scrubs are the metrics of the scrubber.
type scrubs struct {
	passes, checked, bytes *prometheus.CounterVec
	damaged, last          *prometheus.GaugeVec
}
