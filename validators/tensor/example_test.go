package tensor_test

import (
	"fmt"
	"log"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// Adds two cases to a comparison and reads how far the engine is from the reference model.
func ExampleComparison() {
	comparison := tensor.NewComparison(tensor.Options{ATol: 0.05})
	for i, values := range [][2][]float32{
		{{1, 2, 3}, {1, 2, 3}},
		{{1, 2, 3}, {1, 2.25, 3}},
	} {
		reference, err := tensor.New(values[0], 3)
		if err != nil {
			log.Fatal(err)
		}
		engine, err := tensor.New(values[1], 3)
		if err != nil {
			log.Fatal(err)
		}
		if err := comparison.Add(i, reference, engine); err != nil {
			log.Fatal(err)
		}
	}
	r := comparison.Result()
	fmt.Printf("%d of %d elements differ by more than 0.05\n", r.Failed, r.Elements)
	fmt.Printf("largest error %g in case %d, lowest cosine %.4f in case %d\n", r.MaxAbs, r.MaxAbsCase, r.CosineMin, r.CosineMinCase)
	fmt.Printf("worst element: index %v, reference %g, engine %g\n", r.Worst.Index, r.Worst.Reference, r.Worst.Engine)
	// Output:
	// 1 of 6 elements differ by more than 0.05
	// largest error 0.25 in case 1, lowest cosine 0.9985 in case 1
	// worst element: index [1], reference 2, engine 2.25
}
