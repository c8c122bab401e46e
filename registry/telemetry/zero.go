package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/policy"
)

// startAtZero exports the value 0 for all counters whose label values are known. Prometheus
// does not count the first appearance of a series as an increase, so rules with increase() or
// rate() would miss the first event. It leaves out requests, which have too many series.
func (t *Telemetry) startAtZero() {
	results := func(counter *prometheus.CounterVec) {
		startAt(counter, success)
		for _, code := range registry.Codes() {
			startAt(counter, string(code))
		}
	}
	results(t.promotions)
	startAt(t.promotions, unchanged)
	results(t.rollbacks)
	results(t.attachments)
	results(t.resolves)
	results(t.scrub.passes)
	results(t.gc.runs)
	startAt(t.refusals, append(policy.Requirements(), noRequirement)...)
	startAt(t.blobBytes, "pushed", "pulled")
	startAt(t.gc.marked, "marked", "unmarked")
	startAt(t.gc.removed, "manifest", "member", "blob", "leftover")
	for _, counter := range []*prometheus.CounterVec{t.reloads, t.relisted, t.scrub.checked, t.scrub.bytes} {
		counter.WithLabelValues()
	}
}

func startAt(counter *prometheus.CounterVec, values ...string) {
	for _, value := range values {
		counter.WithLabelValues(value)
	}
}
