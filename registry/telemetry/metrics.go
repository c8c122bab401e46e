package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"mlpromote.dev/mlpromote/registry/history"
)

// define creates all metrics of this program. docs/how-to/monitor.md lists them; a test
// compares.
func (t *Telemetry) define() {
	t.requests = t.counters("mlpromote_http_requests_total",
		"Requests by route, method and status; code 0: the connection ended before the response.", "route", "method", "code")
	t.seconds = t.histograms("mlpromote_http_request_duration_seconds",
		"Duration of requests, including the transfer of bodies.", requestBuckets(), "route", "method")
	t.inFlight = t.gauge("mlpromote_http_requests_in_flight", "Requests in progress.")
	t.blobBytes = t.counters("mlpromote_blob_bytes_total", "Bytes of blobs, by direction: pushed or pulled.", "direction")
	t.uploads = t.gauge("mlpromote_uploads_in_flight", "Uploads of blob content in progress.")

	t.promotions = t.counters("mlpromote_promotions_total", "Promotions by result: success, unchanged, or the code of the error.", "result")
	t.breakGlass = t.counters("mlpromote_break_glass_promotions_total",
		"Promotions that skipped unmet requirements, as approvers agreed.").WithLabelValues()
	t.rollbacks = t.counters("mlpromote_rollbacks_total", "Rollbacks by result: success, or the code of the error.", "result")
	t.refusals = t.counters("mlpromote_policy_refusals_total", "Requirements of a policy that stopped a promotion.", "requirement")
	t.attachments = t.counters("mlpromote_evidence_attached_total",
		"Attached evidence by result: success, or the code of the error.", "result")
	t.resolves = t.counters("mlpromote_resolves_total",
		"Resolve requests by result: success, or the code of the error; no_engine means that no engine fits.", "result")
	t.database = t.histograms("mlpromote_database_duration_seconds",
		"Duration of database operations, including waits for the database.", databaseBuckets(), "operation")
	t.certificate = t.gauges("mlpromote_tls_certificate_expiry_timestamp_seconds", "When the TLS certificate in use expires.")
	t.refused = t.gauges("mlpromote_tls_certificate_refused",
		"1 while the certificate in the files cannot be used or is not valid, and the previous one stays in use.")
	t.configuration = t.gauges("mlpromote_configuration_state",
		"1 for the state of the configuration: agreed, pending, unreadable or differs.", "state")
	t.reloads = t.counters("mlpromote_configuration_changes_total", "How often another configuration was put into force.")

	t.scrub = scrubs{
		passes: t.counters("mlpromote_scrub_passes_total",
			"Passes of the scrubber that ended in this replica, by result: success, or the code of the error.", "result"),
		checked: t.counters("mlpromote_scrub_checked_total", "Pieces of content that the scrubber read in this replica."),
		bytes:   t.counters("mlpromote_scrub_bytes_total", "Bytes that the scrubber read in this replica."),
		damaged: t.gauges("mlpromote_scrub_damaged_blobs", "Blobs known to be changed, missing or unreadable."),
		last: t.gauges("mlpromote_scrub_last_pass_timestamp_seconds",
			"When the last complete pass ended, in any replica; before that, when the first began."),
	}
	t.relisted = t.counters("mlpromote_evidence_relisted_total",
		"Evidence against releases that a repository lost, and that was listed there again.")
	t.historyFaults = t.gauges("mlpromote_history_faults",
		"Heads, tags, summaries and orders of evidence that the history does not explain.")
	t.gc = collections{
		runs: t.counters("mlpromote_gc_runs_total",
			"Runs of garbage collection by result: success, or the code of the error.", "result"),
		marked: t.counters("mlpromote_gc_marks_total",
			"Records that garbage collection marked as unreferenced, or unmarked because they are used again.", "change"),
		removed: t.counters("mlpromote_gc_removed_total",
			"What garbage collection removed, by kind: manifest, member, blob or leftover.", "kind"),
		skipped: t.gauge("mlpromote_gc_skipped_repositories", "Repositories that the last garbage collection skipped because of damage."),
		last:    t.gauge("mlpromote_gc_last_success_timestamp_seconds", "When garbage collection last succeeded in this replica."),
	}
	t.gc.bytes = prometheus.NewCounter(prometheus.CounterOpts{Name: "mlpromote_gc_removed_bytes_total",
		Help: "Bytes of the blobs that garbage collection removed."})
	t.gc.seconds = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "mlpromote_gc_duration_seconds",
		Help: "Duration of a run of garbage collection.", Buckets: []float64{.1, 1, 10, 60, 600, 3600}})
	t.registry.MustRegister(t.gc.bytes, t.gc.seconds)
}

// Configured records the state of the configuration, and whether another one was put into
// force.
func (t *Telemetry) Configured(state history.ConfigurationState, taken bool) {
	for _, s := range history.ConfigurationStates() {
		t.configuration.WithLabelValues(string(s)).Set(map[bool]float64{true: 1}[s == state])
	}
	if taken {
		t.reloads.WithLabelValues().Inc()
	}
}

// Certificate records when the TLS certificate in use expires, and whether the files hold
// another one that is refused.
func (t *Telemetry) Certificate(expires time.Time, refused bool) {
	t.certificate.WithLabelValues().Set(float64(expires.Unix()))
	t.refused.WithLabelValues().Set(map[bool]float64{true: 1}[refused])
}

// HistoryFaults records the number of history faults.
func (t *Telemetry) HistoryFaults(n int) { t.historyFaults.WithLabelValues().Set(float64(n)) }

// Relisted counts evidence that a repository lost and lists again.
func (t *Telemetry) Relisted(n int) { t.relisted.WithLabelValues().Add(float64(n)) }

// requestBuckets range from a lookup to an upload of an hour.
func requestBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 3600}
}

// databaseBuckets range from a read from memory to the longest wait for a lock.
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

// gauges creates a gauge that is not exported until it is set.
func (t *Telemetry) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	t.registry.MustRegister(g)
	return g
}

func (t *Telemetry) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	t.registry.MustRegister(g)
	return g
}

// Disk sets what measures the disk of the content. Without it there are no such metrics.
func (t *Telemetry) Disk(measure func() (free, reserved int64, err error)) {
	t.disk.measure.Store(&measure)
}
