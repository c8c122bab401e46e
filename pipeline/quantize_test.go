package pipeline

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// What is proposed for an engine asks for all that it was made with, and for nothing that
// follows from its target.
func TestProposedQuantize(t *testing.T) {
	t.Parallel()
	plain := registry.Target{CPU: registry.TargetCPU{Arch: "amd64"}}
	vnni := registry.Target{CPU: registry.TargetCPU{Arch: "amd64", Features: []string{"avx512_vnni"}}}
	for want, c := range map[string]struct {
		options map[string]any
		target  registry.Target
	}{
		"{method: static, exclude: [a]}": {map[string]any{"method": "static-int8", "observer": "minmax", "reduce_range": true}, plain},
		"{method: static, observer: percentile, percentile: 99.9%, exclude: [a]}": {
			map[string]any{"method": "static-int8", "observer": "percentile", "percentile": 99.9, "reduce_range": false}, vnni},
		"{method: dynamic, per_channel: true, reduce_range: false, exclude: [a]}": {
			map[string]any{"method": "dynamic-int8", "per_channel": true, "reduce_range": false}, plain},
		"{method: dynamic, reduce_range: true, exclude: [a]}": {map[string]any{"method": "dynamic-int8", "reduce_range": true}, vnni},
	} {
		if got := specQuantize(c.options, c.target, []string{"a"}).Flow(); got != want {
			t.Errorf("%v: %s, want %s", c.options, got, want)
		}
	}
}
