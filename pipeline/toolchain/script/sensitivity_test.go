package script_test

import (
	"encoding/json"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
)

// sensitivity is what the driver says of it.
type sensitivity struct {
	SNR   float64 `json:"snr_db"`
	Of    int
	Nodes []struct {
		Node, Operator string
		SNR            float64 `json:"snr_db"`
	}
}

func sensitivityIn(t *testing.T, seconds float64, method string) sensitivity {
	t.Helper()
	driver := script.New(installed(t), driverproc.Budget{})
	job := quantize(t, map[string]any{"method": method, "sensitivity": seconds})
	job.Inputs[0] = toolchaintest.Input(t, toolchain.RoleModel, "model.onnx", scaled)
	job.Inputs = append(job.Inputs, toolchaintest.Input(t, toolchain.RoleCases, "cases-00000.safetensors", digits+"cases/cases-00000.safetensors"))
	outcome, err := driver.Do(t.Context(), job, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var result struct{ Sensitivity sensitivity }
	if err := json.Unmarshal(outcome.Result, &result); err != nil {
		t.Fatal(err)
	}
	t.Log(method, result.Sensitivity)
	return result.Sensitivity
}

// The channel that no 8 bits hold lies between the convolutions: they, and what passes it
// on, cost most, and the last layer costs little.
func TestSensitivity(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"static-int8", "dynamic-int8"} {
		found := sensitivityIn(t, 300, method)
		var order []string
		costs := make(map[string]float64)
		for _, n := range found.Nodes {
			order = append(order, n.Node)
			costs[n.Node] = n.SNR
		}
		if len(order) < 2 || len(order) != found.Of || slices.Index(order[:2], "conv1") < 0 && slices.Index(order[:2], "conv2") < 0 {
			t.Errorf("%s: %v of %d: want all, and a convolution among the costliest", method, order, found.Of)
		}
		if found.SNR > 15 || method == "static-int8" && costs["dense"] < costs["conv2"]+10 {
			t.Errorf("%s: all %v dB, alone %v", method, found.SNR, costs)
		}
	}
}

// Nodes for which there is no time are left.
func TestSensitivityKeepsItsTime(t *testing.T) {
	t.Parallel()
	if found := sensitivityIn(t, 1e-9, "dynamic-int8"); len(found.Nodes) != 0 || found.Of < 2 {
		t.Errorf("%+v, want no node of some", found)
	}
}
