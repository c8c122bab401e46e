package cases

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"

	"mlpromote.dev/mlpromote/pipeline/cases/parquet"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// pandasIndex matches the columns in which pandas keeps the index of a frame.
var pandasIndex = regexp.MustCompile(`^__index_level_[0-9]+__$`)

// readParquet reads a Parquet file, by the rules of [readTable]: its columns are those of a CSV file,
// but for lists of numbers. A list is a row of several numbers, and one with the name of the only input is that
// input alone.
func readParquet(file, label string, iface validators.Interface) (map[string]tensor.Tensor, []string, error) {
	f, size, err := openTable(file)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	wanted, err := wantedColumns(f, size, label, iface)
	var read parquet.Table
	if err == nil {
		read, err = parquet.Read(f, size, parquet.Limits{}, wanted)
	}
	if err == nil && read.Rows == 0 {
		err = fmt.Errorf("no cases: want a row for each")
	}
	if err != nil {
		return nil, nil, registry.Errorf(registry.CodeInvalid, "%s: %w", file, err)
	}
	c := columns{read, label, iface}
	tensors, notes, err := c.tensors()
	if err != nil {
		return nil, nil, registry.Errorf(registry.CodeInvalid, "%s: %w", file, err)
	}
	for _, name := range read.Names {
		if !wanted(name) {
			notes = append(notes, fmt.Sprintf("left out %q, which is not an input of the model", name))
		}
	}
	return tensors, notes, nil
}

// namesInParquet are the names of the columns of a Parquet file.
func namesInParquet(file string) ([]string, error) {
	f, size, err := openTable(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := parquet.Look(f, size, parquet.Limits{})
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: %w", file, err)
	}
	var names []string
	for _, column := range all {
		names = append(names, column.Name)
	}
	return names, nil
}

// wantedColumns says which columns of a file become inputs or labels.
func wantedColumns(f *os.File, size int64, label string, iface validators.Interface) (func(name string) bool, error) {
	all, err := parquet.Look(f, size, parquet.Limits{})
	if err != nil {
		return nil, err
	}
	names := make([]string, len(all))
	for i, column := range all {
		names[i] = column.Name
	}
	kind, one := kindOfColumns(names, label, iface), iface.Inputs[0].Name
	alone := len(iface.Inputs) == 1 && slices.Contains(all, parquet.Described{Name: one, List: true})
	return func(name string) bool {
		if alone {
			return name == one || isLabel(name, label)
		}
		return kind(name) != unused && !pandasIndex.MatchString(name)
	}, nil
}

// columns makes tensors of the columns that were read.
type columns struct {
	parquet.Table
	label string
	iface validators.Interface
}

func (c columns) tensors() (all map[string]tensor.Tensor, notes []string, err error) {
	all = make(map[string]tensor.Tensor)
	one := c.iface.Inputs[0]
	byName := len(c.iface.Inputs) > 1 || one.DType == validators.Text && slices.Contains(c.Names, one.Name) ||
		slices.ContainsFunc(c.Columns, func(col parquet.Column) bool { return col.Name == one.Name && col.Shape != nil })
	var names []string
	labels := -1
	for i, col := range c.Columns {
		_, isInput := c.iface.Input(col.Name)
		names = append(names, col.Name)
		switch {
		case isLabel(col.Name, c.label) && !isInput && labels < 0:
			labels = i
			all[col.Name], err = c.labels(col)
		case byName && isInput:
			all[col.Name], err = c.tensor(col)
		case byName:
			notes = append(notes, fmt.Sprintf("left out %q, which is not an input of the model", col.Name))
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if byName {
		return all, notes, nil
	}
	features, notes, err := features(names, labels, one)
	if err != nil {
		return nil, nil, err
	}
	if one.DType == validators.Text {
		all[one.Name], err = c.joinedTexts(features)
	} else {
		all[one.Name], err = c.joined(features)
	}
	return all, notes, err
}

// joinedTexts puts the texts of columns beside each other.
func (c columns) joinedTexts(at []int) (tensor.Tensor, error) {
	var texts []string
	for row := range c.Rows {
		for _, i := range at {
			if col := c.Columns[i]; col.Kind != parquet.Text || col.Shape != nil {
				return tensor.Tensor{}, registry.Errorf(registry.CodeInvalid, "column %q is no text, and the model takes text", col.Name)
			}
			texts = append(texts, c.Columns[i].Texts[row])
		}
	}
	return tensor.PackText(texts, int64(c.Rows), int64(len(at)))
}

// joined puts the numbers of columns beside each other: a list has several. One column stays as it is.
func (c columns) joined(at []int) (tensor.Tensor, error) {
	if len(at) == 1 {
		return c.tensor(c.Columns[at[0]])
	}
	width := 0
	var parts [][]float64
	for _, i := range at {
		numbers, err := numbersOf(c.Columns[i])
		if err != nil {
			return tensor.Tensor{}, err
		}
		parts = append(parts, numbers)
		width += len(numbers) / c.Rows
	}
	values := make([]float64, 0, width*c.Rows)
	for row := range c.Rows {
		for _, numbers := range parts {
			n := len(numbers) / c.Rows
			values = append(values, numbers[row*n:(row+1)*n]...)
		}
	}
	return tensor.New(values, int64(c.Rows), int64(width))
}

// numbersOf returns the numbers of a column. Errors: CodeInvalid for text, and for integers that floats do not hold.
func numbersOf(c parquet.Column) ([]float64, error) {
	if c.Kind == parquet.Text {
		return nil, registry.WithHint(registry.Errorf(registry.CodeInvalid, "column %q is text, and the model takes numbers", c.Name),
			"text, dates and classes have to become the numbers that the model was trained on")
	}
	if c.Ints == nil {
		return c.Floats, nil
	}
	values := make([]float64, len(c.Ints))
	for i, v := range c.Ints {
		if v > maxWhole || v < -maxWhole {
			return nil, registry.Errorf(registry.CodeInvalid, "column %q: %d is beyond what a float holds exactly", c.Name, v)
		}
		values[i] = float64(v)
	}
	return values, nil
}

// tensor is a column with the type that it has in the file.
func (c columns) tensor(col parquet.Column) (tensor.Tensor, error) {
	shape := append([]int64{int64(c.Rows)}, col.Shape...)
	switch col.Kind {
	case parquet.Text:
		if input, isInput := c.iface.Input(col.Name); isInput && input.DType != validators.Text {
			_, err := numbersOf(col)
			return tensor.Tensor{}, err
		}
		made, err := tensor.PackText(col.Texts, shape...)
		if err != nil {
			err = registry.Errorf(registry.CodeInvalid, "column %q: %w", col.Name, err)
		}
		return made, err
	case parquet.Single:
		values := make([]float32, len(col.Floats))
		for i, v := range col.Floats {
			values[i] = float32(v)
		}
		return tensor.New(values, shape...)
	case parquet.Double:
		return tensor.New(col.Floats, shape...)
	}
	return tensor.New(col.Ints, shape...)
}

// labels are the numbers of classes, or of classes with names the numbers of the names.
func (c columns) labels(col parquet.Column) (tensor.Tensor, error) {
	classes := classesOf(c.iface)
	if classes == nil || col.Shape != nil {
		if _, err := numbersOf(col); err != nil {
			return tensor.Tensor{}, err
		}
		return c.tensor(col)
	}
	texts := col.Texts
	for _, v := range col.Ints {
		text := strconv.FormatInt(v, 10)
		if col.Kind == parquet.Boolean {
			text = map[int64]string{0: "False", 1: "True"}[v] // as numpy writes the classes of a model
		}
		texts = append(texts, text)
	}
	for _, v := range col.Floats {
		texts = append(texts, strconv.FormatFloat(v, 'f', -1, 64))
	}
	return classNumbers(col.Name, texts, classes)
}
