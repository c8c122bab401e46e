package caserun

import (
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Slot is an input of an engine.
type Slot struct {
	Name  string
	DType tensor.DType // as package tensor names it, or validators.Text
	Shape []int64      // of one case, without the bytes of text; -1 is an open dimension
}

// Text reports whether the input is text. Cases hold its bytes along a further last dimension.
func (s Slot) Text() bool { return s.DType == validators.Text }

// stored returns the dtype of the input in files.
func (s Slot) stored() tensor.DType {
	if s.Text() {
		return tensor.Uint8
	}
	return s.DType
}

// rank returns the rank of a case of the input in files.
func (s Slot) rank() int {
	if s.Text() {
		return len(s.Shape) + 1
	}
	return len(s.Shape)
}

// fit reports whether the input accepts one case of a stacked tensor.
func (s Slot) fit(stacked []int64) bool {
	var one []int64
	if s.Text() {
		if len(stacked) < 2 {
			return false
		}
		stacked = stacked[:len(stacked)-1]
	}
	switch len(stacked) {
	case 0:
		return false
	case len(s.Shape):
		one = append([]int64{1}, stacked[1:]...)
	case len(s.Shape) + 1:
		one = stacked[1:]
	default:
		return false
	}
	for i, want := range s.Shape {
		if want >= 0 && want != one[i] {
			return false
		}
	}
	return true
}
