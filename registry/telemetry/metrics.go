package telemetry

import "github.com/prometheus/client_golang/prometheus"

// define makes every metric of ours. docs/how-to/operate.md has the same list, which a test
// compares.
func (t *Telemetry) define() {
	t.requests = t.counters("mlpromote_http_requests_total", "Requests that were answered, by route, method and status; code 0: broken off.", "route", "method", "code")
	t.seconds = t.histograms("mlpromote_http_request_seconds", "Time to answer, bodies included.", requestBuckets(), "route", "method")
	t.inFlight = t.gauge("mlpromote_http_requests_in_flight", "Requests that are being answered.")
	t.blobBytes = t.counters("mlpromote_blob_bytes_total", "Bytes of blobs, by direction: pushed or pulled.", "direction")
	t.uploads = t.gauge("mlpromote_uploads_in_flight", "Requests that are bringing bytes of blobs.")

	t.promotions = t.counters("mlpromote_promotions_total", "Promotions by result: promoted, already, or the code of the error.", "result")
	t.rollbacks = t.counters("mlpromote_rollbacks_total", "Rollbacks by result: done, or the code of the error.", "result")
	t.refusals = t.counters("mlpromote_policy_refusals_total", "Requirements of a policy that stopped a promotion.", "requirement")
	t.attachments = t.counters("mlpromote_attachments_total", "Evidence that came in, by result: done, or the code of the error.", "result")
	t.resolves = t.counters("mlpromote_resolves_total", "Questions for an engine by result: hit, or the code of the error; no_engine is a miss.", "result")
	t.database = t.histograms("mlpromote_database_seconds", "Time of operations on the database, waiting for it included.", databaseBuckets(), "operation")

	t.gc = collections{
		runs:      t.counters("mlpromote_gc_runs_total", "Collections by result: done, or the code of the error.", "result"),
		condemned: t.counters("mlpromote_gc_condemned_total", "Records that collections found to be needed by nothing, or needed again.", "change"),
		removed:   t.counters("mlpromote_gc_removed_total", "What collections removed, by kind: manifest, membership, blob or leftover.", "kind"),
		leftAlone: t.gauge("mlpromote_gc_repositories_left_alone", "Repositories that the last collection left alone because of damage."),
		last:      t.gauge("mlpromote_gc_last_success_timestamp_seconds", "When a collection last succeeded in this replica."),
	}
	t.gc.bytes = prometheus.NewCounter(prometheus.CounterOpts{Name: "mlpromote_gc_removed_bytes_total", Help: "Bytes of the blobs that collections removed."})
	t.gc.seconds = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "mlpromote_gc_seconds", Help: "Time of a collection.", Buckets: []float64{.1, 1, 10, 60, 600, 3600}})
	t.registry.MustRegister(t.gc.bytes, t.gc.seconds)
}

// requestBuckets go from a lookup to an hour of upload.
func requestBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 3600}
}

// databaseBuckets go from a read in memory to the longest wait for a lock.
func databaseBuckets() []float64 {
	return []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
}

func (t *Telemetry) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	t.registry.MustRegister(c)
	return c
}

func (t *Telemetry) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	t.registry.MustRegister(h)
	return h
}

func (t *Telemetry) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	t.registry.MustRegister(g)
	return g
}
