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
		Outputs: []validators.TensorInfo{{Name: "logits", DType: "float32", Shape: []validators.Dim{{Size: 1}, {Size: 3}}, Kind: validators.KindScores}},
	}
	limits, err := validators.ExpandPreset(validators.PresetDefault, offered, []string{"int8"}, 1, validators.LimitOverrides{})
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
		judged := limits.Judge("int8", validators.Measured{Outputs: map[string]tensor.Result{"logits": comparison.Result()}, Cases: 1})
		fmt.Println(judged.Verdict)
		for _, reason := range judged.Reasons {
			fmt.Println(" ", reason.Message)
		}
	}
	// Output:
	// pass
	// fail
	//   output logits: the signal to noise ratio in dB is 0.100578, below the limit of 12
	//   output logits: top1 is 0 % in 1 case, which proves 0 % with 95 % confidence, and the limit is 5 %: no number of cases like these would prove it: ask for less, or improve the engine
}
