package accuracy

import (
	"slices"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// ranked makes outputs and labels such that the classes are the last dimension and every label is one:
// it moves the classes of scores [n, classes, ...], and leaves out places whose label is negative.
// It calls a function with what there is, once or for each case.
func (m Metric) ranked(reference, engine, labels tensor.Tensor, add func(reference, engine, labels tensor.Tensor) error) error {
	for _, output := range []tensor.Tensor{reference, engine} {
		if err := validate(output, labels); err != nil {
			return err
		}
	}
	if m.Needs != NeedsSeveral { // texts, whose tokens are in front of the classes
		var err error
		if reference, err = classesLast(reference, labels); err != nil {
			return err
		}
		if engine, err = classesLast(engine, labels); err != nil {
			return err
		}
	}
	if !m.voids(reference) || !m.voids(engine) || !hasVoid(labels) || !fitRows(reference, labels) || !fitRows(engine, labels) {
		return add(reference, engine, labels)
	}
	for i := range labels.Shape[0] {
		kept, err := labelledPlaces(i, reference, engine, labels)
		if err != nil {
			return err
		}
		if err := add(kept[0], kept[1], kept[2]); err != nil {
			return err
		}
	}
	return nil
}

// voids reports whether a negative label can be no answer of an output. Class numbers can be negative, but for those of places.
func (m Metric) voids(output tensor.Tensor) bool {
	return output.DType.Class() == tensor.ClassFloat || m.Needs == NeedsPlaces
}

func hasVoid(labels tensor.Tensor) bool {
	return labels.DType.Class() == tensor.ClassInteger && slices.ContainsFunc(labels.Float64s(), func(v float64) bool { return v < 0 })
}

// fitRows reports whether an output has a row of scores, or a class number, for each label.
func fitRows(output, labels tensor.Tensor) bool {
	shape := output.Shape
	if output.DType.Class() == tensor.ClassFloat {
		shape = shape[:len(shape)-1]
	}
	return len(shape) > 0 && slices.Equal(bare(shape), bare(labels.Shape))
}

// classesLast moves the classes of scores from the second dimension to the last one, where the shape of the
// labels says that they are there: [n, classes, height, width] and labels [n, height, width]. Dimensions of 1 do not
// count. Errors: of kind tensor.ErrMismatch where both would fit
// four dimensions or more. Of three, such as [n, tokens, classes], the last is meant.
func classesLast(output, labels tensor.Tensor) (tensor.Tensor, error) {
	if output.DType.Class() != tensor.ClassFloat {
		return output, nil
	}
	shape, wanted := bare(output.Shape), bare(labels.Shape)
	rank := len(shape)
	if rank < 2 {
		return output, nil
	}
	places := slices.Delete(slices.Clone(shape), 1, 2)
	last := slices.Equal(shape[:rank-1], wanted)
	switch {
	case !slices.Equal(places, wanted) || last && rank < 4:
		return output, nil
	case last:
		return tensor.Tensor{}, mismatchf(
			"labels have shape %v, scores %v: the classes can be dimension 1 or %d; want sizes that tell them apart", wanted, shape, rank-1)
	}
	cases, classes := int(shape[0]), int(shape[1])
	return tensor.Tensor{DType: output.DType, Shape: append(places, int64(classes)), Data: turned(output, cases, classes)}, nil
}

// turned are the bytes of [cases, classes, ...] in the order of [cases, ..., classes].
func turned(t tensor.Tensor, cases, classes int) []byte {
	size, each := t.DType.Size(), t.Len()/max(cases*classes, 1)
	out := make([]byte, 0, len(t.Data))
	for n := range cases {
		of := t.Data[n*classes*each*size:]
		for place := range each {
			for class := range classes {
				at := (class*each + place) * size
				out = append(out, of[at:at+size]...)
			}
		}
	}
	return out
}

// labelledPlaces are the rows of one case whose labels are not negative.
func labelledPlaces(n int64, of ...tensor.Tensor) ([]tensor.Tensor, error) {
	rows := make([]tensor.Tensor, len(of))
	for i, t := range of {
		var err error
		if rows[i], err = t.Rows(n, n+1); err != nil {
			return nil, err
		}
	}
	labels := rows[len(rows)-1]
	values := labels.Float64s()
	kept := make([]tensor.Tensor, len(rows))
	for i, t := range rows {
		width := t.Len() / len(values)
		each := width * t.DType.Size()
		var data []byte
		for place, label := range values {
			if label >= 0 {
				data = append(data, t.Data[place*each:(place+1)*each]...)
			}
		}
		shape := []int64{1, int64(len(data) / each), int64(width)}
		if t.DType.Class() != tensor.ClassFloat {
			shape = shape[:2]
		}
		kept[i] = tensor.Tensor{DType: t.DType, Shape: shape, Data: data}
	}
	if kept[0].Len() == 0 {
		return nil, mismatchf("all labels of case %d are negative, which says that no answer counts: leave the case out", n)
	}
	return kept, nil
}
