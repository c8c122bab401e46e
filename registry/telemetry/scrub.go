package telemetry

import "time"

// Scrubbed records that a pass of the scrubber ended.
func (t *Telemetry) Scrubbed(err error) {
	t.scrub.passes.WithLabelValues(result(err)).Inc()
}

// ScrubbedBytes records that the scrubber read a piece of content of n bytes.
func (t *Telemetry) ScrubbedBytes(n int64) {
	t.scrub.checked.WithLabelValues().Inc()
	t.scrub.bytes.WithLabelValues().Add(float64(n))
}

// Damaged records how much content is known to be damaged. since is when the last pass ended
// or, before that, the first began. The zero time means that no pass has begun.
func (t *Telemetry) Damaged(n int, since time.Time) {
	t.scrub.damaged.WithLabelValues().Set(float64(n))
	if !since.IsZero() {
		t.scrub.last.WithLabelValues().Set(float64(since.Unix()))
	}
}
