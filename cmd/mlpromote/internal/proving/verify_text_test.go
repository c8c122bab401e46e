package proving

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// What layers cost is measured in ONNX Runtime, and shown beside verdicts of engines of ONNX Runtime alone.
func TestExplainedByTheirOwnRuntime(t *testing.T) {
	t.Parallel()
	engine := func(label, runtime string, s *verify.Sensitivity) verify.VerifiedEngine {
		e := verify.VerifiedEngine{Label: label, Sensitivity: s}
		e.Parity.Runtime = evidence.RuntimeUsed{Name: runtime}
		return e
	}
	nodes := []verify.GraphNodeSensitivity{{Node: "a"}}
	shared, other := &verify.Sensitivity{Nodes: nodes}, &verify.Sensitivity{Nodes: nodes}
	var got []string
	for _, e := range explained(verify.Result{Engines: []verify.VerifiedEngine{
		engine("openvino", "openvino", other), engine("v1", "onnxruntime", shared), engine("v3", "onnxruntime", shared),
		engine("passes", "onnxruntime", nil), engine("no nodes", "onnxruntime", &verify.Sensitivity{}), engine("web", "onnxruntime-web", other),
	}}) {
		got = append(got, e.Label)
	}
	if strings.Join(got, ", ") != "v1" {
		t.Errorf("shown are %q, want v1", got)
	}
}
