package spec_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/pipeline/spec"
)

// What is written is read again as it was.
func TestFlow(t *testing.T) {
	t.Parallel()
	no, eighth, rank := false, spec.Fraction(0.125), 4
	for want, v := range map[string]spec.Variant{
		"fp32": {Name: "fp32", Precision: "fp32"},
		"{name: int8-x, quantize: {method: static, observer: percentile, percentile: 99.9%, reduce_range: false, exclude: [/conv/1, \"a, b\"]}}": {
			Name: "int8-x", Precision: "int8", Quantize: &spec.Quantize{
				Method: "static", Observer: "percentile", Percentile: 0.999, ReduceRange: &no, Exclude: []string{"/conv/1", "a, b"}}},
		"{name: w, quantize: {method: weights, tool: nncf, bits: 4, block_size: 64}}": {
			Name: "w", Precision: "int4", Quantize: &spec.Quantize{Method: "weights", Tool: "nncf", Bits: 4, BlockSize: 64}},
		"{name: mixed, quantize: {method: fp16, tolerance: {rtol: 0.001, atol: 1e-05}}}": {
			Name: "mixed", Precision: "fp16", Quantize: &spec.Quantize{Method: "fp16", Tolerance: &spec.Tolerance{RTol: 0.001, ATol: 1e-5}}},
		"{name: small, model: m.onnx, compress: [{method: prune, pattern: unstructured, amount: 12.5%, nodes: [a]}, {method: low-rank, rank: 4}], quantize: {method: dynamic}}": {
			Name: "small", Precision: "int8-compressed", Model: spec.Path{Written: "m.onnx"}, Quantize: &spec.Quantize{Method: "dynamic"},
			Compress: []spec.Compress{{Method: "prune", Pattern: "unstructured", Amount: &eighth, Nodes: []string{"a"}}, {Method: "low-rank", Rank: &rank}}},
	} {
		if got := v.Flow(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		s, err := load(t, strings.Replace(small, "[fp32, int8]", "["+want+"]", 1))
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		if diff := cmp.Diff(v, s.Variants[0]); diff != "" {
			t.Error(diff)
		}
	}
}
