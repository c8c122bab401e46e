package diagnose

import (
	"slices"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// summed adds up the differences of a tensor over cases: as the engine gives it, and with the channels
// of the engine moved from the last place to the first, where shapes allow that.
type summed struct {
	straight, turned *tensor.Comparison
	cases            int // that were added
	straights, turns int // of these, with a shape that fits
	broken           bool
}

func newSummed() *summed {
	return &summed{straight: tensor.NewComparison(tensor.Options{}), turned: tensor.NewComparison(tensor.Options{})}
}

// add adds a case. Errors: those of [tensor.Comparison.Add], for shapes that do not fit.
func (s *summed) add(number int, reference, engine tensor.Tensor, mayTurn bool) error {
	s.cases++
	err := s.straight.Add(number, reference, engine)
	if err == nil {
		s.straights++
	}
	if !mayTurn {
		return err
	}
	if other, ok := channelsFirst(engine); ok && slices.Equal(other.Shape, reference.Shape) && s.turned.Add(number, reference, other) == nil {
		s.turns++
		return nil
	}
	return err
}

// result gives the figures, and whether they are those of the engine's channels moved: the better of
// the two, since the shapes of both may be the same.
func (s *summed) result() (result tensor.Result, turned bool) {
	a, b := s.straight.Result(), s.turned.Result()
	if s.turns == s.cases && (s.straights < s.cases || b.SpreadSNR > a.SpreadSNR) {
		return b, true
	}
	return a, false
}

// channelsFirst moves the last dimension of a tensor behind the first, which is that of cases or of the batch.
func channelsFirst(t tensor.Tensor) (tensor.Tensor, bool) {
	rank := len(t.Shape)
	if rank < 3 || rank > 6 {
		return tensor.Tensor{}, false
	}
	size, channels, outer := t.DType.Size(), t.Shape[rank-1], t.Shape[0]
	inner := int64(1)
	for _, n := range t.Shape[1 : rank-1] {
		inner *= n
	}
	data := make([]byte, 0, len(t.Data))
	for o := range outer {
		for c := range channels {
			for i := range inner {
				at := int(((o*inner+i)*channels + c)) * size
				data = append(data, t.Data[at:at+size]...)
			}
		}
	}
	shape := append([]int64{outer, channels}, t.Shape[1:rank-1]...)
	return tensor.Tensor{DType: t.DType, Shape: shape, Data: data}, true
}
