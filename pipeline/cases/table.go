package cases

import (
	"encoding/csv"
	"errors"
	"fmt"
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

// openTable opens a file that is small enough to be read into memory. size is in bytes.
func openTable(file string) (f *os.File, size int64, err error) {
	if f, err = os.Open(file); err != nil {
		return nil, 0, badCases(file, err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() > maxTable {
		err = registry.Errorf(registry.CodeInvalid, "%s: %d bytes: a table may have %d; use .npz", file, info.Size(), maxTable)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// readTable reads a CSV file: a line of names, then a line for each case, of numbers but for the
// columns that are text to the model. Where it takes floats, an empty field is NaN. For a model with one input, the columns with the names of its
// features are that input, or all columns but the labels if it has no names; for one with
// several, the column of its name is an input. Notes say what was left out.
func readTable(file, label string, iface validators.Interface) (map[string]tensor.Tensor, []string, error) {
	f, _, err := openTable(file)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	t, err := scanTable(f, func(names []string) func(string) column { return kindOfColumns(names, label, iface) })
	if err != nil {
		return nil, nil, registry.Errorf(registry.CodeInvalid, "%s%w", file, err)
	}
	tensors, notes, err := t.tensors(label, iface)
	if err != nil {
		err = registry.Errorf(registry.CodeInvalid, "%s: %w", file, err)
	}
	return tensors, notes, err
}

// namesInTable reads the first line of a CSV file.
func namesInTable(file string) ([]string, error) {
	f, _, err := openTable(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	record, err := csv.NewReader(f).Read()
	if errors.Is(err, io.EOF) {
		return nil, registry.Errorf(registry.CodeInvalid, "%s%w", file, errNoLines)
	}
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: %w", file, err)
	}
	names, err := columnNames(record)
	if err != nil {
		err = registry.Errorf(registry.CodeInvalid, "%s%w", file, err)
	}
	return names, err
}

// errNoLines: a table is empty.
var errNoLines = registry.Errorf(registry.CodeInvalid, ": no cases: want a line of names, then a line of numbers for each case")

// column says what the cells of a column are.
type column int

const (
	numeric column = iota // floats, of which an empty field is a missing one
	whole                 // integers and labels: every field has a number
	text
	unused // of any content
)

// kindOfColumns says what the column of a name is, by what the model takes. names are those of all columns.
func kindOfColumns(names []string, label string, iface validators.Interface) func(name string) column {
	one := iface.Inputs[0]
	return func(name string) column {
		input, isInput := iface.Input(name)
		switch {
		case isInput && input.DType == validators.Text:
			return text
		case isLabel(name, label) && !isInput && classesOf(iface) != nil:
			return text
		case isInput:
			return numbersFor(input)
		case isLabel(name, label):
			return whole
		case len(iface.Inputs) > 1, one.Names != nil && !slices.Contains(one.Names, name):
			return unused
		case one.DType == validators.Text && slices.Contains(names, one.Name):
			return unused
		case one.DType == validators.Text:
			return text
		}
		return numbersFor(one)
	}
}

// numbersFor says which numbers an input takes.
func numbersFor(input validators.TensorInfo) column {
	if input.DType.Class() == tensor.ClassFloat {
		return numeric
	}
	return whole
}

// isLabel reports whether a column has the labels.
func isLabel(name, label string) bool {
	return name == label || label == "" && slices.Contains(labelNames, name)
}

// classesOf are the names of the classes that labels are compared with; nil if there are none.
func classesOf(iface validators.Interface) []string {
	if len(iface.Outputs) == 0 {
		return nil
	}
	name, _ := iface.ScoredOutput(false)
	output, _ := iface.Output(name)
	return output.Names
}

// table has the cells of a table. values has those of all columns, line after line: 0 for text.
type table struct {
	names  []string
	kinds  []column
	values []float64
	texts  map[string][]string // by column
	empty  map[string]int      // empty fields by column, which are NaN
}

func scanTable(r io.Reader, kinds func(names []string) func(name string) column) (table, error) {
	reader := csv.NewReader(r)
	reader.ReuseRecord = true
	t := table{texts: make(map[string][]string), empty: make(map[string]int)}
	for {
		record, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF) && len(t.values) == 0:
			return t, errNoLines
		case errors.Is(err, io.EOF):
			return t, nil
		case err != nil:
			return t, registry.Errorf(registry.CodeInvalid, ": %w", err)
		case t.names == nil:
			if t.names, err = columnNames(record); err != nil {
				return t, err
			}
			kind := kinds(t.names)
			for _, name := range t.names {
				t.kinds = append(t.kinds, kind(name))
			}
			continue
		}
		line, _ := reader.FieldPos(0)
		if err := t.add(record, line); err != nil {
			return t, err
		}
	}
}

// add adds a line.
func (t *table) add(record []string, line int) error {
	for i, cell := range record {
		value := 0.0
		switch t.kinds[i] {
		case text:
			t.texts[t.names[i]] = append(t.texts[t.names[i]], strings.Clone(cell))
		case numeric, whole:
			number := strings.TrimSpace(cell)
			if number == "" && t.kinds[i] == numeric {
				t.empty[t.names[i]]++
				number = "nan"
			}
			var err error
			if value, err = strconv.ParseFloat(number, 64); err != nil {
				return notNumber(line, t.names[i], cell)
			}
		}
		t.values = append(t.values, value)
	}
	return nil
}

// notNumber is the error about a field that has to have a number.
func notNumber(line int, name, cell string) error {
	if strings.TrimSpace(cell) == "" {
		return registry.WithHint(registry.Errorf(registry.CodeInvalid, ":%d: column %q: the field is empty, and labels and whole numbers cannot be missing", line, name),
			"leave out the rows without it, or fill it in as the model's training did")
	}
	return registry.WithHint(registry.Errorf(registry.CodeInvalid, ":%d: column %q: %.40q is not a number", line, name, cell),
		"the model takes numbers here: write those that it was trained on for text, dates and classes, or leave the field empty for a missing one")
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
func (t table) tensors(label string, iface validators.Interface) (map[string]tensor.Tensor, []string, error) {
	all := make(map[string]tensor.Tensor)
	one := iface.Inputs[0]
	notes := t.missing()
	if len(iface.Inputs) > 1 || one.DType == validators.Text && slices.Contains(t.names, one.Name) {
		for i, name := range t.names {
			if t.kinds[i] == unused {
				notes = append(notes, fmt.Sprintf("left out %q, which is not an input of the model", name))
				continue
			}
			made, err := t.column(i, iface)
			if err != nil {
				return nil, nil, err
			}
			all[name] = made
		}
		return all, notes, nil
	}
	labels := slices.IndexFunc(t.names, func(name string) bool { return isLabel(name, label) && name != one.Name })
	if labels >= 0 {
		made, err := t.column(labels, iface)
		if err != nil {
			return nil, nil, err
		}
		all[t.names[labels]] = made
	}
	columns, left, err := features(t.names, labels, one)
	if err != nil {
		return nil, nil, err
	}
	notes = append(notes, left...)
	rows := len(t.values) / len(t.names)
	if one.DType == validators.Text {
		var texts []string
		for row := range rows {
			for _, i := range columns {
				texts = append(texts, t.texts[t.names[i]][row])
			}
		}
		all[one.Name], err = tensor.PackText(texts, int64(rows), int64(len(columns)))
		return all, notes, err
	}
	values := make([]float64, 0, rows*len(columns))
	for row := range rows {
		for _, i := range columns {
			values = append(values, t.values[row*len(t.names)+i])
		}
	}
	all[one.Name], err = tensor.New(values, int64(rows), int64(len(columns)))
	return all, notes, err
}

// missing notes the fields that are empty.
func (t table) missing() (notes []string) {
	for _, name := range t.names {
		if n := t.empty[name]; n > 0 {
			notes = append(notes, fmt.Sprintf("column %q has %s: missing numbers, NaN", name, registry.Count(n, "empty field")))
		}
	}
	return notes
}

// features are the columns of the only input: those of its features by their names, or all but the
// labels. names are those of all columns, and labels is the one with the labels, or -1. Errors: CodeInvalid if some features have no column.
func features(names []string, labels int, input validators.TensorInfo) (columns []int, notes []string, err error) {
	if input.Names == nil {
		for i := range names {
			if i != labels {
				columns = append(columns, i)
			}
		}
		return columns, nil, nil
	}
	var missing []string
	for _, name := range input.Names {
		i := slices.Index(names, name)
		if i >= 0 && i == labels {
			return nil, nil, registry.Errorf(registry.CodeInvalid, "%q is a feature of the model, so it cannot be the labels", name)
		}
		if i >= 0 {
			columns = append(columns, i)
			continue
		}
		missing = append(missing, name)
	}
	if len(missing) > 0 {
		return nil, nil, registry.Errorf(registry.CodeInvalid, "no column %.200q, which are features of the model: it has %.400q", missing, names)
	}
	for i, name := range names {
		if i != labels && !slices.Contains(columns, i) {
			notes = append(notes, fmt.Sprintf("left out %q, which is not a feature of the model", name))
		}
	}
	return columns, notes, nil
}

// column is one number or text for each case, or of labels the number of each class.
func (t table) column(i int, iface validators.Interface) (tensor.Tensor, error) {
	name := t.names[i]
	if _, isInput := iface.Input(name); t.kinds[i] == text && isInput {
		return tensor.PackText(t.texts[name], int64(len(t.texts[name])))
	}
	values := make([]float64, 0, len(t.values)/len(t.names))
	for at := i; at < len(t.values); at += len(t.names) {
		values = append(values, t.values[at])
	}
	if t.kinds[i] == text {
		return classNumbers(name, t.texts[name], classesOf(iface))
	}
	made, _ := tensor.New(values, int64(len(values))) // it has that many
	return made, nil
}

// classNumbers are the numbers of labels that are names of classes. column is the name of the labels.
func classNumbers(column string, labels, classes []string) (tensor.Tensor, error) {
	numbers := make(map[string]float64, len(classes))
	for i, class := range slices.Backward(classes) { // the first of equal names counts
		numbers[class] = float64(i)
	}
	values := make([]float64, len(labels))
	for row, label := range labels {
		number, ok := numbers[strings.TrimSpace(label)]
		if !ok {
			return tensor.Tensor{}, registry.Errorf(registry.CodeInvalid, "labels %q: case %d is %.60q, which is no class of the model: want one of %.300q",
				column, row, label, classes)
		}
		values[row] = number
	}
	made, _ := tensor.New(values, int64(len(values))) // it has that many
	return made, nil
}
