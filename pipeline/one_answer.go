package pipeline

import (
	"bytes"
	"errors"
	"fmt"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// oneAnswer warns of outputs whose values are answers, and the same in all cases: an engine that always gives them passes,
// since nothing says that it does no better.
func (m maker) oneAnswer(golden goldenSet) (warnings []string, err error) {
	for _, output := range m.inputs.Interface.Outputs {
		limits, err := validators.DefaultLimits(validators.PrecisionFP32, output, golden.set.Count)
		if err != nil {
			return warnings, err
		}
		if limits.Equal == nil || golden.set.Count < 2 {
			continue
		}
		same, err := golden.sameRows(output.Name)
		if err != nil {
			return warnings, cases.TensorError(err)
		}
		if same {
			warnings = append(warnings, fmt.Sprintf("output %q has the same answer in all %d cases: an engine that always gives it passes: "+
				"add cases with other answers", output.Name, golden.set.Count))
		}
	}
	return warnings, nil
}

// sameRows reports whether all cases have the same values of an output.
func (g goldenSet) sameRows(name string) (bool, error) {
	var first []byte
	for i, file := range g.files {
		row, same, err := sameRowsOf(file.Path, name, g.set.Shards[i].Count, first)
		if err != nil || !same {
			return false, err
		}
		first = row
	}
	return true, nil
}

// sameRowsOf reports whether all cases of a file have the values of the first case, which it returns; nil is that of the file.
func sameRowsOf(path, name string, count int, first []byte) (_ []byte, same bool, err error) {
	f, err := tensor.Open(path, tensor.Limits{})
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for from := 0; from < count; from += guessedRows {
		to := min(from+guessedRows, count)
		rows, err := f.Rows(name, int64(from), int64(to))
		if err != nil {
			return nil, false, err
		}
		size := len(rows.Data) / (to - from)
		if first == nil {
			first = bytes.Clone(rows.Data[:size])
		}
		if !bytes.Equal(rows.Data, bytes.Repeat(first, to-from)) {
			return first, false, nil
		}
	}
	return first, true, nil
}
