package parity

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Groups says by what cases are grouped: by each tensor that has few values, such as a category, the label, or one column of a table.
// In a group an engine may always give the same answer without a figure over all cases showing it. The zero Groups looks for none.
type Groups struct {
	Dir     string // folder of the cases
	Shards  []artifact.Shard
	Tensors []string // names in each shard of the cases
	Texts   []string // of these, the ones that hold text
}

const (
	maxColumns = 64 // of a case: a tensor with more has no columns that are looked at
	maxGroups  = 64 // values of a column: one with more is no category
)

// column is a tensor, or one of the numbers that it has for each case.
type column struct {
	name   string
	values map[int]string // by the number of the case
	seen   map[string]bool
}

func (c *column) add(number int, value string) {
	c.seen[value] = true
	c.values[number] = value
}

// groupings returns the groups of cases by each column that has at least two values, and few.
func (g Groups) groupings() (all []tensor.Grouping, err error) {
	for _, name := range g.Tensors {
		columns, err := g.columns(name)
		if err != nil {
			return nil, err
		}
		for _, c := range columns {
			if len(c.seen) < 2 || len(c.seen) > maxGroups || 2*len(c.seen) > len(c.values) {
				continue
			}
			all = append(all, tensor.Grouping{By: c.name, Of: func(number int) (string, bool) {
				value, ok := c.values[number]
				return value, ok
			}})
		}
	}
	return all, nil
}

// group compares the answers in groups of cases. An output with a mask, or with many values in each case, has none.
func (run Run) group(comparisons map[string]*tensor.Comparison, outputs map[string]tensor.Result) error {
	if len(run.Groups.Shards) == 0 {
		return nil
	}
	groupings, err := run.Groups.groupings()
	if err != nil {
		return err
	}
	groupings = append([]tensor.Grouping{{Of: func(int) (string, bool) { return "", true }}}, groupings...) // all cases
	for name, c := range comparisons {
		r := outputs[name]
		groups := c.Groups(groupings)
		r.Groups = &groups
		outputs[name] = r
	}
	return nil
}

// columns reads the columns of a tensor; none where a case has too many numbers, or another number of them than the first.
func (g Groups) columns(name string) (columns []*column, err error) {
	for _, shard := range g.Shards {
		if shard.Count == 0 {
			continue
		}
		file, err := tensorfile.Open(filepath.Join(g.Dir, shard.File), tensorfile.Limits{})
		if err != nil {
			return nil, err
		}
		values, err := g.read(file, name, shard.Count)
		file.Close()
		if err != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "groups by %s: %w", name, err)
		}
		width := len(values) / max(shard.Count, 1)
		if columns == nil {
			for i := range width {
				c := &column{name: name, values: make(map[int]string), seen: make(map[string]bool)}
				if width > 1 {
					c.name = fmt.Sprintf("%s[%d]", name, i)
				}
				columns = append(columns, c)
			}
		}
		if width == 0 || width != len(columns) {
			return nil, nil
		}
		for i, v := range values {
			if c := columns[i%width]; len(c.seen) <= maxGroups {
				c.add(shard.First+i/width, v)
			}
		}
	}
	return columns, nil
}

// read returns the values of a tensor as text, case by case; none if a case has too many.
func (g Groups) read(file *tensorfile.File, name string, count int) (values []string, err error) {
	info, ok := file.Info(name)
	if !ok || len(info.Shape) == 0 || info.Shape[0] != int64(count) {
		return nil, nil
	}
	n, err := info.Len()
	text := slices.Contains(g.Texts, name)
	if text {
		n /= max(info.Shape[len(info.Shape)-1], 1)
	}
	if err != nil || n == 0 || n/int64(count) > maxColumns {
		return nil, err
	}
	t, err := file.Tensor(name)
	if err != nil {
		return nil, err
	}
	if text {
		return tensor.UnpackText(t)
	}
	digits := -1
	if t.DType.Class() == tensor.ClassFloat {
		digits = 6
	}
	for _, v := range t.Float64s() {
		if math.IsNaN(v) {
			v = math.NaN() // all are one value
		}
		values = append(values, strconv.FormatFloat(v, 'g', digits, 64))
	}
	return values, nil
}
