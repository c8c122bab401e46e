package tensor

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// RelFloor is the smallest divisor of a relative error: the spacing of float64 at 1. If the
// magnitude of the reference value is smaller, the error is divided by RelFloor.
const RelFloor = 0x1p-52

// Options of a comparison. The zero value requires equal numbers.
type Options struct {
	// RTol and ATol are the tolerances of numpy.allclose: an element passes if
	// |engine-reference| <= ATol + RTol*|reference|. Finite, not negative.
	RTol, ATol float64
	// Channels takes the spread of each channel, which is an index along the last axis, in place
	// of the spread of all values. It is for values that have units of their own.
	Channels bool
	// Systematic asks for Result.Systematic.
	Systematic bool
	// Quarters asks for Result.Quarters, with Channels of each channel.
	Quarters bool
	// Bounded is for values with bounds, such as probabilities: none is so far from the rest that it hides their errors.
	Bounded bool
	// Ranks takes the largest value of a row for its answer.
	Ranks bool
	// Keep keeps the values of cases that have few, for [Comparison.Groups].
	Keep bool
	// ClassAxis is the axis of scores of classes, counted from the last one: 2 of [cases, classes, height, width]. The channels and the
	// rows of all figures are along it.
	ClassAxis int
	// Spreads are the least that the spread is taken for: one, or with Channels one for each
	// channel. They are for a subset of the cases, because its own spread can be far below the spread of all;
	// see Result.Spreads. Others than there are channels count for nothing.
	Spreads []float64
	// Fill is the magnitude from which the reference's values are fill values, as [Magnitudes.Fill] finds it;
	// 0 if that is not known, which a comparison takes for [NoFill]. Where the engine's values are within 1 % of them they
	// count as equal infinities do, for all figures but those of rows and of equal elements; where not, they count as errors.
	Fill float64
	// Fills returns which values can be fill values.
	Fills Fills
}

// limit is the magnitude from which a value says nothing about the spread of the others.
func (o Options) limit() float64 {
	if o.Fill > 0 {
		return min(o.Fill, extreme)
	}
	return extreme
}

// channelsOf is how many channels a shape has: one without Channels, and if there are too many to keep each.
func (o Options) channelsOf(shape []int64) int {
	if !o.Channels || len(shape) == 0 || shape[len(shape)-1] < 1 || shape[len(shape)-1] > maxUnits {
		return 1
	}
	return int(shape[len(shape)-1])
}

// fill is Fill, or NoFill where it is not known.
func (o Options) fill() float64 {
	if o.Fill > 0 {
		return o.Fill
	}
	return NoFill
}

// Comparison accumulates the differences between an engine's output and the reference model's,
// over the cases of one output. All arithmetic is in float64. It is not safe for concurrent
// use.
type Comparison struct {
	options  Options
	result   Result
	sums     sums
	broken   bool   // an element has no finite error
	differs  bool   // a case has another bit than the reference's
	varies   bool   // a case has other bits of the reference than the first
	first    []byte // digest of the reference's bits in the first case
	classes  classCounts
	agreed   int64   // rows with equal argmax
	prefixes float64 // sum over the cases of the share of these rows before the first other one
	shift    float64 // the first value of the reference
	shifted  bool
	each     []CaseFigures
	numbers  []int // of these cases
	channels channels
	sizes    pairsBySize
	kept     []caseValues
	// One decoded chunk of each side, small enough to stay in the first-level cache while the
	// passes over it run.
	reference, engine [chunk]float64
}

const chunk = 512

// NewComparison returns a comparison without cases.
func NewComparison(options Options) *Comparison {
	return &Comparison{options: options, result: Result{
		MaxAbsCase: -1, MaxRelCase: -1, CosineMin: 1, CosineMinCase: -1, CaseErrorCase: -1,
	}}
}

// CaseError is an error in one case.
type CaseError struct {
	Case int   // its number, as given to [Comparison.Add]
	Err  error // without the number
}

// Error returns the message with the number of the case.
func (e *CaseError) Error() string { return fmt.Sprintf("case %d: %v", e.Case, e.Err) }

// Unwrap returns the error without the number.
func (e *CaseError) Unwrap() error { return e.Err }

// Add compares one case and adds it to the figures. Its number is only for errors.
// The tensors must have the same shape and dtypes of one class: a float16 engine is compared
// with a float32 reference model, an int64 one is not. Otherwise nothing is added, and the
// error, a *CaseError of kind ErrMismatch, names both.
func (c *Comparison) Add(caseIndex int, reference, engine Tensor) error {
	return c.add(caseIndex, reference, engine, false)
}

// AddCopy adds a case that has the inputs of an earlier one. Its errors count for MaxAbs, MaxError and CaseError. It is
// not among the cases of Result.FullCases and Result.Top1Cases, nor among those that Spread and SpreadSNR are of, since
// it says no more than the other.
func (c *Comparison) AddCopy(caseIndex int, reference, engine Tensor) error {
	return c.add(caseIndex, reference, engine, true)
}

// bits compares what the figures of numbers do not tell apart, such as 0 and -0. A case that says nothing, such as one
// of NaN alone, is not counted.
func (c *Comparison) bits(reference, engine Tensor, says bool) {
	if !c.varies {
		sum := sha256.Sum256(reference.Data)
		c.varies = c.first != nil && !bytes.Equal(c.first, sum[:])
		c.first = sum[:]
	}
	switch {
	case reference.DType != engine.DType || !bytes.Equal(reference.Data, engine.Data):
		c.differs = true
	case says:
		c.result.Identical++
	}
}

func (c *Comparison) add(caseIndex int, reference, engine Tensor, again bool) error {
	if err := c.check(reference, engine); err != nil {
		return &CaseError{caseIndex, err}
	}
	reference, engine = classesLast(reference, c.options.ClassAxis), classesLast(engine, c.options.ClassAxis)
	c.begin(reference)
	c.result.Float = reference.DType.Class() == ClassFloat
	k := newKernel(c.options, c.firstOf(reference))
	rows := newTop1(reference.Shape, c.options.fill())
	k.again, rows.again = again, again
	var whole *answered
	if reference.DType.Class() != ClassFloat && !again {
		whole = new(answered)
	}
	refSize, engSize := reference.DType.Size(), engine.DType.Size()
	for at, n := 0, reference.Len(); at < n; at += chunk {
		m := min(chunk, n-at)
		ref, eng := c.reference[:m], c.engine[:m]
		decode(ref, reference.DType, reference.Data[at*refSize:])
		decode(eng, engine.DType, engine.Data[at*engSize:])
		if refSize == 8 && engSize == 8 && reference.DType.Class() == ClassInteger {
			separate(ref, eng, reference.Data[at*8:], engine.Data[at*8:])
		}
		rows.feed(ref, eng)
		if whole != nil {
			for i := range ref {
				whole.add(ref[i], eng[i])
			}
		}
		if fill := c.options.fill(); fill != NoFill {
			leaveOut(ref, eng, fill)
		}
		k.run(ref, eng, int64(at))
		if again {
			c.channels.feedCopy(ref, eng)
			continue
		}
		c.channels.feed(ref, eng)
		if c.options.Systematic {
			c.channels.all.feed(ref, eng, c.channels.shift, c.channels.limit)
		}
		if c.options.Quarters && c.result.Float {
			c.sizes.feed(ref, eng, at, c.options.channelsOf(reference.Shape))
		}
	}
	c.bits(reference, engine, k.says())
	c.keep(caseIndex, reference, engine, again)
	if k.says() && !again {
		c.classes.end(cmp.Or(whole, rows.classes))
	}
	c.merge(caseIndex, &k, rows, reference, engine)
	return nil
}

func (c *Comparison) check(reference, engine Tensor) error {
	for _, tol := range []float64{c.options.RTol, c.options.ATol} {
		if !(tol >= 0 && tol <= math.MaxFloat64) {
			return Errorf(ErrMismatch, "tolerance %v: expected a finite number, zero or more", tol)
		}
	}
	if err := reference.Validate(); err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	if err := engine.Validate(); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	if err := sameShape(reference.Shape, engine.Shape); err != nil {
		return err
	}
	if reference.DType.Class() != engine.DType.Class() {
		return Errorf(ErrMismatch,
			"the reference is %s, the engine %s: their values are not comparable", reference.DType, engine.DType)
	}
	return nil
}

func sameShape(want, got []int64) error {
	if slices.Equal(want, got) {
		return nil
	}
	return Errorf(ErrMismatch, "the engine has shape %v, the reference %v", got, want)
}

// separate moves 64-bit integers that differ but round to the same float64 one step apart, so
// that rounding never hides a difference.
func separate(ref, eng []float64, refData, engData []byte) {
	for i := range ref {
		if ref[i] == eng[i] && binary.LittleEndian.Uint64(refData[8*i:]) != binary.LittleEndian.Uint64(engData[8*i:]) {
			eng[i] = math.Nextafter(eng[i], math.Inf(1))
		}
	}
}

// merge adds the figures of one case to the totals.
func (c *Comparison) merge(caseIndex int, k *kernel, rows top1, reference, engine Tensor) {
	r := &c.result
	r.Cases++
	r.Elements += int64(reference.Len())
	r.Failed += k.failed
	r.NewNaN += k.newNaN
	r.NewInf += k.newInf
	r.Top1Rows += rows.Rows
	c.agreed += rows.agreed
	if misses := rows.misses(); k.says() && misses == misses {
		r.Top1Cases++
		r.Top1Misses += misses
		c.prefixes += float64(rows.prefix) / float64(rows.Rows)
	}
	if n := reference.Len(); k.says() {
		r.FullCases++
		r.EqualMisses += float64(k.sums.differ) / float64(n)
	}
	c.note(caseIndex, k, rows, reference.Len())
	c.channels.end(c.options.Channels)
	c.broken = c.broken || k.broken
	c.sums.add(k.sums)
	if k.maxAbs > r.MaxAbs {
		r.MaxAbs, r.MaxAbsCase = k.maxAbs, caseIndex
	}
	if k.maxRel > r.MaxRel {
		r.MaxRel, r.MaxRelCase = k.maxRel, caseIndex
	}
	if cosine := k.cosine(); cosine < r.CosineMin || r.CosineMinCase < 0 {
		r.CosineMin, r.CosineMinCase = cosine, caseIndex
	}
	if k.worstAt >= 0 && (r.Worst == nil || k.worst > r.Worst.Excess) {
		at := int(k.worstAt)
		r.Worst = &Element{Case: caseIndex, Index: classesBack(unravel(k.worstAt, reference.Shape), c.options.ClassAxis), Excess: k.worst,
			Reference: reference.Float64(at), Engine: engine.Float64(at)}
	}
}

// unravel returns the indices of element i in C order.
func unravel(i int64, shape []int64) []int64 {
	index := make([]int64, len(shape))
	for axis := len(shape) - 1; axis >= 0; axis-- {
		index[axis] = i % shape[axis]
		i /= shape[axis]
	}
	return index
}
