// Package percase writes and reads the file of per-case figures that belongs to a parity report: for each
// case the numbers that the report's counts and bounds are computed from. The file is safetensors
// with one-dimensional tensors, so that five lines of numpy read it. Format: docs/reference/format-evidence.md.
package percase

import (
	"bytes"
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Names of tensors, and the entry of the metadata that says the version.
const (
	ofAccuracy = "accuracy."
	ofCurrent  = "current."
	ofOutput   = "output."
	sliceName  = "slice"
	versionKey = "mlpromote.figures"
	version    = "1"
)

// maxTensors bounds the tensors of a file: eleven for each output, and a few of accuracy.
const maxTensors = 1 << 13

// Figures are the figures of each case, in the order of the cases.
type Figures struct {
	Accuracy accuracy.Columns                // nil: it was not measured
	Current  accuracy.Columns                // beside the engine that the destination has; nil: not measured
	Slices   []int64                         // of each case; nil: the limits ask for none
	Outputs  map[string][]tensor.CaseFigures // by output
}

// Marshal writes the file. It says what was left out because the file would be larger than
// [evidence.MaxCaseFigures]: first the figures of outputs, then all, and data is nil. Before both it leaves out the classes
// that were answered, from which no figure is computed, and then the optional figures of outputs, and says nothing of it.
func (f Figures) Marshal() (data []byte, leftOut string, err error) {
	if data, err = f.marshal(outputFigures); err != nil || len(data) <= evidence.MaxCaseFigures {
		return data, "", err
	}
	f.Accuracy, f.Current = f.Accuracy.WithoutAnswers(), f.Current.WithoutAnswers()
	for _, of := range [][]outputFigure{outputFigures, required()} {
		if data, err = f.marshal(of); err != nil || len(data) <= evidence.MaxCaseFigures {
			return data, "", err
		}
	}
	leftOut = fmt.Sprintf("those of outputs: all have %d bytes, and %d are stored", len(data), evidence.MaxCaseFigures)
	f.Outputs = nil
	if data, err = f.marshal(nil); err != nil || len(f.Accuracy) > 0 && len(data) <= evidence.MaxCaseFigures {
		return data, leftOut, err
	}
	return nil, fmt.Sprintf("all: those of accuracy have %d bytes, and %d are stored", len(data), evidence.MaxCaseFigures), nil
}

func (f Figures) marshal(of []outputFigure) ([]byte, error) {
	all := make(accuracy.Columns)
	all.Add(ofAccuracy, f.Accuracy)
	all.Add(ofCurrent, f.Current)
	if f.Slices != nil {
		of, err := tensor.New(f.Slices, int64(len(f.Slices)))
		if err != nil {
			return nil, err
		}
		all[sliceName] = of
	}
	for name, each := range f.Outputs {
		for _, figure := range of {
			column, err := figure.write(each)
			if err != nil {
				return nil, err
			}
			all[ofOutput+name+"."+figure.name] = column
		}
	}
	var out bytes.Buffer
	err := tensorfile.Write(&out, all, map[string]string{versionKey: version})
	return out.Bytes(), err
}

// Read reads a file that anybody may have written. It does not look at its digest, and not at what the
// columns of accuracy have to be: see [accuracy.Restore]. Errors: CodeInvalid.
func Read(data []byte) (Figures, error) {
	all, err := readAll(data)
	if err != nil {
		return Figures{}, registry.Errorf(registry.CodeInvalid, "per-case figures: %s", err.Error())
	}
	f := Figures{Accuracy: all.Under(ofAccuracy), Current: all.Under(ofCurrent), Outputs: make(map[string][]tensor.CaseFigures)}
	if of, ok := all[sliceName]; ok {
		if f.Slices, err = tensor.Values[int64](of); err != nil {
			return Figures{}, registry.Errorf(registry.CodeInvalid, "per-case figures: %s: %s", sliceName, err.Error())
		}
	}
	outputs := all.Under(ofOutput)
	for name := range outputs {
		output, ok := strings.CutSuffix(name, "."+outputFigures[0].name)
		if !ok {
			continue
		}
		if f.Outputs[output], err = readOutput(outputs.Under(output + ".")); err != nil {
			return Figures{}, registry.Errorf(registry.CodeInvalid, "per-case figures of output %.100q: %s", output, err.Error())
		}
	}
	return f, nil
}

// readAll reads the tensors of a file, each of one dimension.
func readAll(data []byte) (accuracy.Columns, error) {
	if len(data) > evidence.MaxCaseFigures {
		return nil, fmt.Errorf("%d bytes: want at most %d", len(data), evidence.MaxCaseFigures)
	}
	file, err := tensorfile.NewFile(bytes.NewReader(data), int64(len(data)), tensorfile.Limits{MaxTensors: maxTensors, MaxRank: 1})
	if err != nil {
		return nil, err
	}
	if v := file.Metadata()[versionKey]; v != version {
		return nil, fmt.Errorf("its metadata have %s %.40q: want %q", versionKey, v, version)
	}
	all := make(accuracy.Columns)
	for _, name := range file.Names() {
		if all[name], err = file.Tensor(name); err != nil {
			return nil, err
		}
		if len(all[name].Shape) != 1 {
			return nil, fmt.Errorf("tensor %.100q has shape %v: want one dimension", name, all[name].Shape)
		}
	}
	return all, nil
}

// Answers are, of each case, the share of its answers that only the reference model has right, and that only the engine
// has. ok is false where the metric is no rate of right answers.
func (f Figures) Answers() (lost, won []float64, ok bool) {
	columns := make([][]float64, 2)
	for i, name := range []string{"lost", "won"} {
		of, there := f.Accuracy[name]
		if !there {
			return nil, nil, false
		}
		values, err := tensor.Values[float64](of)
		if err != nil {
			return nil, nil, false
		}
		columns[i] = values
	}
	return columns[0], columns[1], true
}
