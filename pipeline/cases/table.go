package cases

import (
	"encoding/csv"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// maxTable bounds a table, whose numbers take eight bytes each in memory.
const maxTable = 1 << 30

// readTable reads a CSV file: a line of names, then a line of numbers for each case. For a
// model with one input, all columns but the labels are that input, in their order; for one with
// several, the column of its name is an input.
func readTable(file, label string, iface validators.Interface) (map[string]tensor.Tensor, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, badCases(file, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxTable {
		return nil, registry.Errorf(registry.CodeInvalid,
			"%s: %d bytes: a table may have %d; use .npz", file, info.Size(), maxTable)
	}
	t, err := scanTable(f)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s%w", file, err)
	}
	return t.tensors(label, iface)
}

// numbers is a table of them, line after line.
type numbers struct {
	names  []string
	values []float64
}

func scanTable(r io.Reader) (numbers, error) {
	reader := csv.NewReader(r)
	reader.ReuseRecord = true
	var t numbers
	for {
		record, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF) && len(t.values) == 0:
			return t, registry.Errorf(registry.CodeInvalid,
				": no cases: want a line of names, then a line of numbers for each case")
		case errors.Is(err, io.EOF):
			return t, nil
		case err != nil:
			return t, registry.Errorf(registry.CodeInvalid, ": %w", err)
		case t.names == nil:
			if t.names, err = columnNames(record); err != nil {
				return t, err
			}
			continue
		}
		line, _ := reader.FieldPos(0)
		for i, cell := range record {
			value, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
			if err != nil {
				return t, registry.WithHint(registry.Errorf(registry.CodeInvalid,
					":%d: column %q: %.40q is not a number", line, t.names[i], cell),
					"text, dates and classes have to become the numbers that the model was trained on")
			}
			t.values = append(t.values, value)
		}
	}
}

// columnNames reads the first line.
func columnNames(record []string) ([]string, error) {
	names := slices.Clone(record)
	names[0] = strings.TrimPrefix(names[0], "\ufeff")
	isNumber := func(name string) bool { _, err := strconv.ParseFloat(strings.TrimSpace(name), 64); return err == nil }
	switch {
	case !slices.ContainsFunc(names, func(name string) bool { return !isNumber(name) }):
		return nil, registry.Errorf(registry.CodeInvalid, ":1: want the names of the columns in the first line")
	case len(names) == 1 && strings.ContainsAny(names[0], ";\t"):
		return nil, registry.Errorf(registry.CodeInvalid, ":1: one column: want commas between columns")
	}
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
		if slices.Contains(names[:i], names[i]) {
			return nil, registry.Errorf(registry.CodeInvalid, ":1: two columns are called %q", names[i])
		}
	}
	return names, nil
}

// tensors gives every input its columns.
func (t numbers) tensors(label string, iface validators.Interface) (map[string]tensor.Tensor, error) {
	width := len(t.names)
	rows := int64(len(t.values) / width)
	all := make(map[string]tensor.Tensor)
	if len(iface.Inputs) == 1 {
		labels := slices.IndexFunc(t.names, func(name string) bool {
			return name == label || label == "" && slices.Contains(labelNames, name) && name != iface.Inputs[0].Name
		})
		features := make([]float64, 0, len(t.values))
		for i, v := range t.values {
			if i%width != labels {
				features = append(features, v)
			}
		}
		if labels >= 0 {
			all[t.names[labels]] = t.column(labels)
			width--
		}
		made, err := tensor.New(features, rows, int64(width))
		all[iface.Inputs[0].Name] = made
		return all, err
	}
	for i, name := range t.names {
		all[name] = t.column(i)
	}
	return all, nil
}

// column is one number for each case.
func (t numbers) column(i int) tensor.Tensor {
	var values []float64
	for at := i; at < len(t.values); at += len(t.names) {
		values = append(values, t.values[at])
	}
	made, _ := tensor.New(values, int64(len(values))) // it has that many
	return made
}
