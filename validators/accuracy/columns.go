package accuracy

import (
	"maps"
	"math"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Columns are what the figures of a metric are computed from: named columns of numbers, one for each
// case, in the order of the cases. Where a case can have any number of entries, the column
// "entries" has their number for each case, and other columns have the entries of all cases, those of
// the first case first. They say of every case what it adds to a figure, so that a report can be
// judged again without the engine.
type Columns map[string]tensor.Tensor

// Columns of a rate, which are about both sides.
const (
	columnLost    = "lost"
	columnWon     = "won"
	columnRight   = "right"
	columnAnswers = "answers"
)

// Columns of top1 where each case has one answer: the class that a side answers, or -1. No figure is computed from them.
// They show which class was taken for which.
const (
	AnswerOfReference = "answer.reference"
	AnswerOfEngine    = "answer.engine"
)

// Prefixes of the columns of one side.
const (
	ofReference = "reference."
	ofEngine    = "engine."
)

// Columns returns what was kept of the cases that were added.
func (c *Counter) Columns() Columns {
	if c.engine != nil {
		all := make(Columns)
		for name, column := range c.reference.columns() {
			all[ofReference+name] = column
		}
		for name, column := range c.engine.columns() {
			all[ofEngine+name] = column
		}
		return all
	}
	n := len(c.rated)
	lost, won, right, answers := make([]float64, n), make([]float64, n), make([]float64, n), make([]int64, n)
	for i, r := range c.rated {
		lost[i], won[i], right[i], answers[i] = r.lost, r.won, r.right, int64(r.answers)
	}
	all := Columns{columnLost: column(lost), columnWon: column(won), columnRight: column(right), columnAnswers: column(answers)}
	c.addAnswers(all)
	return all
}

// addAnswers adds the classes that were answered, if they are known of every case.
func (c *Counter) addAnswers(to Columns) {
	reference, engine := make([]int32, len(c.rated)), make([]int32, len(c.rated))
	for i, r := range c.rated {
		if r.reference == unknownClass || r.engine == unknownClass {
			return
		}
		reference[i], engine[i] = r.reference, r.engine
	}
	to[AnswerOfReference], to[AnswerOfEngine] = column(reference), column(engine)
}

// WithoutAnswers returns the columns without those from which no figure is computed.
func (c Columns) WithoutAnswers() Columns {
	rest := maps.Clone(c)
	delete(rest, AnswerOfReference)
	delete(rest, AnswerOfEngine)
	return rest
}

// AnsweredClasses are the classes that both sides answer to each case, or -1. ok is false where they are not known.
func (c Columns) AnsweredClasses() (reference, engine []int32, ok bool) {
	reference, err := tensor.Values[int32](c[AnswerOfReference])
	if err != nil || len(reference) == 0 {
		return nil, nil, false
	}
	engine, err = tensor.Values[int32](c[AnswerOfEngine])
	return reference, engine, err == nil && len(engine) == len(reference)
}

// Restore returns the counter that has so many cases with these columns, which anybody may have
// written. Others are ignored. seed is that of bounds by the bootstrap. Errors: CodeInvalid.
func Restore(m Metric, seed uint64, cases int, columns Columns) (*Counter, error) {
	c := NewCounter(m, false, seed)
	r := &reading{columns: columns, cases: cases}
	if cases < 1 {
		r.fail("there are %d cases: want at least one", cases)
	}
	if c.engine == nil {
		c.restore(r)
		return c, r.err
	}
	for prefix, s := range map[string]side{ofReference: c.reference, ofEngine: c.engine} {
		r.prefix = prefix
		s.restore(r)
	}
	return c, r.err
}

// restore reads the cases of a rate.
func (c *Counter) restore(r *reading) {
	lost, won, right := r.floats(columnLost), r.floats(columnWon), r.floats(columnRight)
	answers := r.integers(columnAnswers)
	reference, engine, said := r.columns.AnsweredClasses()
	for i := range r.cases {
		if r.err != nil {
			return
		}
		of := rated{lost[i], won[i], right[i], int(answers[i]), unknownClass, unknownClass}
		if said && len(reference) == r.cases {
			of.reference, of.engine = max(reference[i], noClass), max(engine[i], noClass)
		}
		if !of.possible() {
			r.fail("case %d has %v lost, %v won and %v right of %d answers, which cannot be", i, of.lost, of.won, of.right, of.answers)
		}
		c.rate(of)
	}
}

// maxAnswers bounds the answers to one case.
const maxAnswers = 1 << 31

// possible reports whether answers can be so: shares of both sides from 0 to 1.
func (r rated) possible() bool {
	for _, share := range []float64{r.lost, r.won, r.right, r.right + r.lost - r.won} {
		if !(share >= -1e-9 && share <= 1+1e-9) {
			return false
		}
	}
	return r.answers >= 1 && r.answers <= maxAnswers
}

// rate adds a case of a rate.
func (c *Counter) rate(of rated) {
	c.rated = append(c.rated, of)
	c.count += of.answers
	c.hits[0] += int(math.Round((of.right + of.lost - of.won) * float64(of.answers)))
	c.hits[1] += int(math.Round(of.right * float64(of.answers)))
}

// column makes a column of values.
func column[T tensor.Scalar](values []T) tensor.Tensor {
	t, err := tensor.New(values, int64(len(values)))
	if err != nil {
		panic(err) // the shape is that of the values
	}
	return t
}

// reading reads columns that anybody may have written. It keeps the first error; what it returns then
// is empty.
type reading struct {
	columns Columns
	prefix  string
	cases   int
	err     error
}

func (r *reading) fail(format string, args ...any) {
	if r.err == nil {
		r.err = registry.Errorf(registry.CodeInvalid, format, args...)
	}
}

// floats reads a number of each case.
func (r *reading) floats(name string) []float64 { return readColumn[float64](r, name, r.cases) }

// integers reads an integer of each case.
func (r *reading) integers(name string) []int64 { return readColumn[int64](r, name, r.cases) }

// readColumn reads n values.
func readColumn[T tensor.Scalar](r *reading, name string, n int) []T {
	t, ok := r.columns[r.prefix+name]
	if !ok {
		r.fail("there is no column %s", r.prefix+name)
		return nil
	}
	values, err := tensor.Values[T](t)
	if err == nil && (len(t.Shape) != 1 || len(values) != n) {
		err = mismatchf("shape %v: want %d values", t.Shape, n)
	}
	if err != nil {
		r.fail("column %s: %s", r.prefix+name, err.Error())
		return nil
	}
	return values
}

// entries reads how many entries each case has, and how many they are together, at most most.
func (r *reading) entries(name string, most int) (each []int64, all int) {
	each = r.integers(name)
	for i, n := range each {
		if n < 0 || n > int64(most-all) {
			r.fail("column %s: case %d has %d entries, and all may have %d", r.prefix+name, i, n, most)
			return nil, 0
		}
		all += int(n)
	}
	return each, all
}

// Under returns the columns whose names begin with a prefix, without it.
func (c Columns) Under(prefix string) Columns {
	under := make(Columns)
	for name, of := range c {
		if len(name) > len(prefix) && name[:len(prefix)] == prefix {
			under[name[len(prefix):]] = of
		}
	}
	return under
}

// Add adds columns with a prefix before their names.
func (c Columns) Add(prefix string, more Columns) {
	for name, of := range more {
		c[prefix+name] = of
	}
}
