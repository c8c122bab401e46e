package goldenset

import (
	"encoding/json"
	"errors"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// Bounds of cross-checking the golden outputs.
const (
	EvaluatorTime = 60 * time.Second  // of all cases; the driver stops between two of them
	EvaluatorKill = 3 * EvaluatorTime // when the driver is ended, if one operator takes that long
	MostCases     = 64
	MostBytes     = 64 << 20 // of the inputs of all cross-checked cases but the first
	// EvaluatorModel is the size in bytes from which models are not evaluated: one case in numpy
	// takes minutes, and the evaluator holds the weights several times.
	EvaluatorModel = 1 << 30
)

// EvaluatorName is what provenance and messages call ONNX's evaluator.
const EvaluatorName = "onnx reference evaluator"

// evaluatorResult is the Result of a run by ONNX's evaluator.
type evaluatorResult struct {
	toolchain.RunResult
	Evaluator string   `json:"evaluator"` // version of ONNX
	Missing   []string `json:"missing"`   // operators that it lacks
	Reason    string   `json:"reason"`    // why it did not run all cases
}

// readEvaluatorResult reads what the evaluator says of its run. Errors: CodeInternal.
func readEvaluatorResult(o toolchain.Outcome, sample int) (evaluatorResult, error) {
	var r evaluatorResult
	err := json.Unmarshal(o.Result, &r)
	if err == nil && (r.Cases < 0 || r.Cases > sample) {
		err = errors.New("it has more cases than it was given")
	}
	if err != nil {
		return r, registry.Errorf(registry.CodeInternal, "result of the %s: %w", EvaluatorName, err)
	}
	return r, nil
}
