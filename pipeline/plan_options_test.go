//go:build cgo

package pipeline_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/pipeline/build"
)

// A plan has the quantizer's options in its own words, and only those that the spec says something about.
func TestQuantizeOptionsOfAPlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		quantize string
		want     map[string]any
	}{
		"static": {"method: static", map[string]any{"method": "static-int8", "observer": "minmax", "per_channel": false, "reduce_range": true}},
		"percentile": {"method: static, observer: percentile, percentile: 99.5%", map[string]any{"method": "static-int8",
			"observer": "percentile", "percentile": 99.5, "per_channel": false, "reduce_range": true}},
		"dynamic":   {"method: dynamic, per_channel: true, reduce_range: false", map[string]any{"method": "dynamic-int8", "per_channel": true, "reduce_range": false}},
		"weights":   {"method: weights, block_size: 32", map[string]any{"method": "weights-int4", "block_size": 32}},
		"8 bits":    {"method: weights, bits: 8, tool: nncf", map[string]any{"method": "weights-int8"}},
		"tolerance": {"method: fp16, tolerance: {rtol: 0.5}", map[string]any{"method": "fp16", "rtol": 0.5, "atol": 0.0}},
		"preset":    {"method: static, tool: nncf, preset: mixed", map[string]any{"method": "static-int8", "preset": "mixed", "reduce_range": true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.calibration(t, []float32{4, 5})
			text := strings.Replace(digits, "{name: int8, quantize: {method: dynamic}}", "{name: q, quantize: {"+c.quantize+"}}", 1) +
				"calibration: calibration/\n"
			plan, err := build.Plan(t.Context(), w.p, w.spec(t, text))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range plan.Engines {
				want := c.want
				if e.Variant == "fp32" {
					want = nil
				}
				if diff := cmp.Diff(want, e.Quantize); diff != "" {
					t.Errorf("options of %s for %s\n%s", e.Variant, c.quantize, diff)
				}
			}
		})
	}
}
