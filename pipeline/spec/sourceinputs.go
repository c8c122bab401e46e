package spec

import (
	"cmp"
	"regexp"
	"strconv"

	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// Dimension is one of an input: a Size, or the Symbol of an open one.
type Dimension struct {
	Symbol string
	Size   int64
}

// DecodeYAML reads a number or a name.
func (d *Dimension) DecodeYAML(n *strictyaml.Node) {
	if n.Kind() == strictyaml.Scalar && dimName.MatchString(n.Text()) {
		d.Symbol = n.Text()
		return
	}
	var err error
	if d.Size, err = strconv.ParseInt(n.Text(), 10, 32); err != nil || d.Size < 1 {
		n.Problemf("found %.40q: want a size of at least 1, or a name for an open dimension, such as batch", n.Text())
	}
}

// String is the dimension as the spec has it.
func (d Dimension) String() string {
	if d.Symbol != "" {
		return d.Symbol
	}
	return strconv.FormatInt(d.Size, 10)
}

const (
	maxSourceInputs = 64
	maxSourceDims   = 8
)

// dimName is how an open dimension may be called.
var dimName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// inputName is how an input of an imported model may be called.
var inputName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]{0,63}$`)

// checkInputs checks that a TorchScript module, and nothing else, has inputs that the spec describes.
func (c checker) checkInputs() {
	s := c.Source
	switch {
	case s.Format != FormatTorchScript && len(s.Inputs) > 0:
		c.problem(at("source", "inputs"), "inputs are for format %s, other files say what theirs are: remove the key", FormatTorchScript)
		return
	case s.Format == FormatTorchScript && len(s.Inputs) == 0:
		c.problem(at("source"), "TorchScript does not say what its inputs are: want inputs: [{name: x, dtype: float32, shape: [batch, 3, 224, 224]}]")
		return
	case len(s.Inputs) > maxSourceInputs:
		c.problem(at("source", "inputs"), "%d inputs: want at most %d", len(s.Inputs), maxSourceInputs)
		return
	}
	names := make(map[string]bool)
	for i, in := range s.Inputs {
		switch {
		case !inputName.MatchString(in.Name):
			c.problem(at("source", "inputs", i, "name"), "input name %.40q: want letters, digits, '_' and '.', at most 64", in.Name)
		case names[in.Name]:
			c.problem(at("source", "inputs", i, "name"), "two inputs are called %q: want names that differ", in.Name)
		}
		names[in.Name] = true
		c.oneOf(at("source", "inputs", i, "dtype"), "dtype", cmp.Or(in.DType, "float32"), sourceDTypes, nil)
		if len(in.Shape) > maxSourceDims {
			c.problem(at("source", "inputs", i, "shape"), "%d dimensions: want at most %d", len(in.Shape), maxSourceDims)
		}
	}
}

var sourceDTypes = []string{"float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool"}

// Example returns a shape that the input may have: open dimensions have the size to optimize for, and 2
// where the spec has none.
func (in SourceInput) Example(shapes Shapes) []int64 {
	sizes := make([]int64, len(in.Shape))
	for i, d := range in.Shape {
		if sizes[i] = d.Size; d.Symbol != "" {
			sizes[i] = cmp.Or(shapes[d.Symbol].Opt, 2)
		}
	}
	return sizes
}
