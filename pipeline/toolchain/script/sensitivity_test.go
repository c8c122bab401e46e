package script_test

import (
	"encoding/json"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/child"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
)

// The channel that no 8 bits hold lies between the convolutions: they, and what passes it
// on, cost most, and the last layer costs little.
func TestSensitivity(t *testing.T) {
	t.Parallel()
	driver := script.New(installed(t), child.Budget{})
	for _, method := range []string{"static-int8", "dynamic-int8"} {
		job := quantize(t, map[string]any{"method": method, "sensitivity": true})
		job.Inputs[0] = toolchaintest.Input(t, toolchain.RoleModel, "model.onnx", scaled)
		job.Inputs = append(job.Inputs, toolchaintest.Input(t, toolchain.RoleCases, "cases-00000.safetensors", digits+"cases/cases-00000.safetensors"))
		outcome, err := driver.Do(t.Context(), job, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		var result struct {
			Sensitivity struct {
				SNR   float64 `json:"snr_db"`
				Nodes []struct {
					Node, Operator string
					SNR            float64 `json:"snr_db"`
				}
			}
		}
		if err := json.Unmarshal(outcome.Result, &result); err != nil {
			t.Fatal(err)
		}
		var order []string
		costs := make(map[string]float64)
		for _, n := range result.Sensitivity.Nodes {
			order = append(order, n.Node)
			costs[n.Node] = n.SNR
		}
		t.Log(method, result.Sensitivity)
		if len(order) < 2 || slices.Index(order[:2], "conv1") < 0 && slices.Index(order[:2], "conv2") < 0 {
			t.Errorf("%s: %v: want a convolution among the costliest", method, order)
		}
		if result.Sensitivity.SNR > 15 || method == "static-int8" && costs["dense"] < costs["conv2"]+10 {
			t.Errorf("%s: all %v dB, alone %v", method, result.Sensitivity.SNR, costs)
		}
	}
}
