package build

import (
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// The note of a step says what it left, and what that costs: by the worst output.
func TestCompressionNote(t *testing.T) {
	t.Parallel()
	for want, step := range map[string]CompressionStep{
		"": {Bytes: BeforeAfter{10, 5}},
		"25.0 % of 8 numbers are zero, 1 layer as before, SNR 12.5 dB": {
			Parameters: &BeforeAfter{8, 8}, Zeros: &BeforeAfter{0, 2}, Kept: []KeptLayer{{Node: "a"}},
			Outputs: map[string]evidence.OutputFigures{"y": {SpreadSNRdB: 30}, "z": {SpreadSNRdB: 12.5}}},
		"6 of 8 numbers are left, 2 layers as before": {
			Parameters: &BeforeAfter{8, 6}, Zeros: &BeforeAfter{0, 0}, Kept: make([]KeptLayer, 2)},
		"top1 97.50 % (reference 99.00 %)": {
			Parameters: &BeforeAfter{0, 0}, Zeros: &BeforeAfter{0, 0}, Accuracy: &evidence.Accuracy{Metric: "top1", Engine: 0.975, Reference: 0.99}},
		"rmse 1.235 (reference 1)": {Accuracy: &evidence.Accuracy{Metric: "rmse", Engine: 1.23456, Reference: 1}},
	} {
		if got := step.note(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
