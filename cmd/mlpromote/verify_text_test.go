package main

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline"
	"mlpromote.dev/mlpromote/registry"
)

// What layers cost is measured in ONNX Runtime, and shown beside verdicts of engines of ONNX Runtime alone.
func TestExplainedByTheirOwnRuntime(t *testing.T) {
	t.Parallel()
	engine := func(label, runtime string, s *pipeline.Sensitivity) pipeline.VerifiedEngine {
		e := pipeline.VerifiedEngine{Label: label, Sensitivity: s}
		e.Parity.Runtime = registry.RuntimeUsed{Name: runtime}
		return e
	}
	nodes := []pipeline.GraphNodeSensitivity{{Node: "a"}}
	shared, other := &pipeline.Sensitivity{Nodes: nodes}, &pipeline.Sensitivity{Nodes: nodes}
	var got []string
	for _, e := range explained(pipeline.VerifyResult{Engines: []pipeline.VerifiedEngine{
		engine("openvino", "openvino", other), engine("v1", "onnxruntime", shared), engine("v3", "onnxruntime", shared),
		engine("passes", "onnxruntime", nil), engine("no nodes", "onnxruntime", &pipeline.Sensitivity{}), engine("web", "onnxruntime-web", other),
	}}) {
		got = append(got, e.Label)
	}
	if strings.Join(got, ", ") != "v1" {
		t.Errorf("shown are %q, want v1", got)
	}
}
