package validators_test

import (
	"fmt"
	"log"

	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Compares the output of an int8 engine with that of the reference model, and asks the limits for a verdict.
func Example() {
	offered := validators.Interface{
		V:       validators.InterfaceVersion,
		Inputs:  []validators.TensorInfo{{Name: "image", DType: "float32", Shape: []validators.Dim{{Size: 1}, {Size: 64}}}},
		Outputs: []validators.TensorInfo{{Name: "logits", DType: "float32", Shape: []validators.Dim{{Size: 1}, {Size: 3}}}},
	}
	limits, err := validators.ExpandPreset(validators.PresetDefault, offered, []string{"int8"}, validators.LimitOverrides{})
	if err != nil {
		log.Fatal(err)
	}
	reference, err := tensor.New([]float32{0.1, 2.5, -1}, 1, 3)
	if err != nil {
		log.Fatal(err)
	}
	for _, values := range [][]float32{{0.1, 2.4, -1}, {2.6, 2.4, -1}} {
		engine, err := tensor.New(values, 1, 3)
		if err != nil {
			log.Fatal(err)
		}
		comparison := tensor.NewComparison(tensor.Options{})
		if err := comparison.Add(0, reference, engine); err != nil {
			log.Fatal(err)
		}
		verdict, reasons := limits.JudgeParity("int8", map[string]tensor.Result{"logits": comparison.Result()}, nil, 1)
		fmt.Println(verdict)
		for _, reason := range reasons {
			fmt.Println(" ", reason.Message)
		}
	}
	// Output:
	// pass
	// fail
	//   output logits: cosine is 0.732791, below the limit of 0.99 (case 0)
	//   output logits: top1 is 0, below the limit of 0.99
}
