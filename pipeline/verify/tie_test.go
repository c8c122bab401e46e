package verify

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/format/tie"
)

// Verification finds out for itself what the graph of an engine asks for.
func TestJudgeTied(t *testing.T) {
	t.Parallel()
	made := func(oldest, file string) run.Candidate {
		return run.Candidate{
			Engine: artifact.Engine{Target: artifact.Target{Name: "x", Runtimes: map[string]artifact.Constraint{"onnxruntime": {Min: oldest}}}},
			Tool:   run.Tool{Toolchain: run.Toolchain{Profile: toolchain.Profile{Name: "onnxruntime", ONNXRuntime: true, Reading: toolchain.Reading{Tie: tie.Graph}}}},
			Model:  run.Loadable{Entry: "e/model.onnx", Inputs: []toolchain.Input{{Name: "e/model.onnx", Path: "../../validators/format/onnx/testdata/" + file}}},
		}
	}
	if reasons, err := judgeTied(made("1.12", "linear.onnx")); err != nil || len(reasons) > 0 {
		t.Errorf("as the graph says: %v, %v", reasons, err)
	}
	reasons, err := judgeTied(made("1.11.1", "linear.onnx"))
	if err != nil || len(reasons) != 1 || reasons[0].Code != reasonRuntime ||
		!strings.Contains(reasons[0].Message, "reads from 1.12 on, and target x lets in onnxruntime >= 1.11.1") {
		t.Errorf("an older runtime: %v, %v", reasons, err)
	}
	if _, err := judgeTied(made("1.12", "make.py")); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("no graph: %v", err)
	}
}
