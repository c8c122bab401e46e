//go:build cgo

package pipeline_test

import (
	"os"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// A segmentation model with its classes in front of the places, and pixels that belong to no class, is judged by its mean
// intersection over union: of three places of each case that count the reference model has two right.
func TestMeanIoUAgainstLabels(t *testing.T) {
	t.Parallel()
	w := setupReal(t, 1)
	const cases, classes, places = 60, 3, 4
	model := new(graph).input(onnxFloat, 1, classes, 2, 2).node("Relu", []string{"x"}, "y", nil).onnx(1, classes, 2, 2)
	if err := os.WriteFile(filepath.Join(w.dir, "model.onnx"), model, 0o600); err != nil {
		t.Fatal(err)
	}
	x, labels := make([]float32, cases*classes*places), make([]int16, cases*places)
	for i := range labels {
		n, place := i/places, i%places
		class := (n + place) % classes
		for c := range classes {
			x[(n*classes+c)*places+place] = float32(i+c) / (cases * places)
		}
		x[(n*classes+class)*places+place] += 4
		switch labels[i] = int16(class); place {
		case 1:
			labels[i] = int16((class + 1) % classes)
		case 3:
			labels[i] = -1
		}
	}
	inputs, err := tensor.New(x, cases, 1, classes, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	truth, err := tensor.New(labels, cases, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	w.writeTensors(t, map[string]tensor.Tensor{"x": inputs, "truth": truth})
	built := w.built(t, "model: m\nversion: 1.0.0\nsource: model.onnx\ncases: {path: cases/, labels: truth}\nvariants: [fp32]\n"+
		"targets: [linux/amd64/v1]\noutputs: {y: {kind: mask}}\nlimits: {accuracy: {metric: miou, min: 40%, drop: {max: 20%}}}\n", build.Options{})
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if err != nil {
		t.Fatal(err)
	}
	e := verified.Engines[0]
	if a := e.Parity.Accuracy; a == nil || a.Reference != 0.5 || a.Engine != 0.5 || a.Cases != cases || e.Parity.Verdict != evidence.VerdictPass {
		t.Errorf("%s: %+v, %v; want a mean of 2 of 4 places where label or answer is the class", e.Parity.Verdict, a, e.Parity.Reasons)
	}
	if again := w.rejudged(t, verified, e); len(again.Differences) > 0 || again.Verdict != evidence.VerdictPass || again.Taken != 0 {
		t.Errorf("judged again by its per-case figures: %+v; want a pass, and nothing taken", again)
	}
}
