package pipeline

import (
	"errors"
	"fmt"
	"math"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// unlike is how many times the spread of one column of scores may be that of another before they look like quantities.
const unlike = 10

// guessedScores warns of outputs that are guessed to be scores by their shape alone, and whose columns have very different
// spreads, as quantities with units of their own do. Errors of scores are relative to the spread of all columns, which hides
// errors of the small ones.
func (m maker) guessedScores(golden goldenSet) ([]string, error) {
	var warnings []string
	for _, output := range m.inputs.Interface.Outputs {
		why := m.plan.Guessed[output.Name]
		if why != validators.GuessedRow || output.Kind != validators.KindScores {
			continue
		}
		least, most, err := golden.spreadsOf(output.Name)
		if err != nil {
			return nil, err
		}
		if most > unlike*least {
			warnings = append(warnings, fmt.Sprintf("output %q is guessed to be scores (%s), and its columns have spreads from %.3g to %.3g: "+
				"if they are quantities, write outputs: {%s: {kind: value}}, and else kind: scores", output.Name, why, least, most, output.Name))
		}
	}
	return warnings, nil
}

// guessedRows is how many cases are in memory at a time.
const guessedRows = 64

// spreadsOf are the smallest and the largest spread of a column of an output, of those that change: infinity and 0 where
// none does.
func (g goldenSet) spreadsOf(name string) (least, most float64, err error) {
	found := columns{compared: tensor.NewComparison(tensor.Options{Channels: true})}
	for i, file := range g.files {
		if err := found.read(file.Path, name, g.set.Shards[i].Count); err != nil {
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
	f, err := tensor.Open(path, tensor.Limits{})
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
