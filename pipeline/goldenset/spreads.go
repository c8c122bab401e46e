package goldenset

import (
	"errors"
	"math"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Unlike is how many times the spread of one column of scores may be that of another before they look like quantities.
const Unlike = 10

// guessedRows is how many cases are in memory at a time.
const guessedRows = 64

// SpreadsOf are the smallest and the largest spread of a column of an output, of those that change: infinity and 0 where
// none does.
func (g Set) SpreadsOf(name string) (least, most float64, err error) {
	found := columns{compared: tensor.NewComparison(tensor.Options{Channels: true})}
	for i, file := range g.Files {
		if err := found.read(file.Path, name, g.Set.Shards[i].Count); err != nil {
			return 0, 0, cases.TensorError(err)
		}
	}
	least = math.Inf(1)
	for i, spread := range found.compared.Result().Spreads {
		if i < len(found.changes) && found.changes[i] {
			least, most = min(least, spread), max(most, spread)
		}
	}
	return least, most, nil
}

// columns are the indices along the last axis of an output.
type columns struct {
	compared *tensor.Comparison
	cases    int
	first    []float64 // row
	changes  []bool    // whether another row has another value
}

// read adds the cases of a file.
func (c *columns) read(path, name string, count int) (err error) {
	f, err := tensorfile.Open(path, tensorfile.Limits{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for from := 0; from < count; from += guessedRows {
		rows, err := f.Rows(name, int64(from), int64(min(from+guessedRows, count)))
		if err != nil {
			return err
		}
		for row := range rows.Shape[0] {
			one, err := rows.Rows(row, row+1)
			if err != nil {
				return err
			}
			if err := c.add(one); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds a case.
func (c *columns) add(one tensor.Tensor) error {
	values := one.Float64s()
	width := int(one.Shape[len(one.Shape)-1])
	if c.first == nil && len(values) > 0 {
		c.first, c.changes = values[:width], make([]bool, width)
	}
	for i, v := range values {
		if at := i % width; at < len(c.first) && v != c.first[at] {
			c.changes[at] = true
		}
	}
	c.cases++
	return c.compared.Add(c.cases-1, one, one)
}
