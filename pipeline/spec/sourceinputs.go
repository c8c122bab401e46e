package spec

import (
	"cmp"
	"regexp"
	"strconv"

	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/validators"
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

// dimName is how an open dimension may be called.
var dimName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

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

// SourceInput is an input of a model whose file does not describe it.
type SourceInput struct {
	Name  string      `yaml:"name,required" doc:"What engines call it"`
	DType string      `yaml:"dtype" doc:"Type of its elements; float32 where nothing is said" enum:"float32,float64,float16,int64,int32,int8,uint8,bool"`
	Shape []Dimension `yaml:"shape,required" doc:"Size or name of each dimension. Those with a name are open, and shapes says which sizes to expect"`
}

// Shapes gives symbolic dimensions their sizes.
type Shapes map[string]Range

// Range is a size to expect: [min, opt, max], or a number for all three.
type Range validators.DimRange

// DecodeYAML reads a number or a list of three.
func (r *Range) DecodeYAML(n *strictyaml.Node) {
	var sizes []int64
	if n.Kind() == strictyaml.Scalar {
		var one int64
		n.Decode(&one)
		sizes = []int64{one, one, one}
	} else {
		n.Decode(&sizes)
	}
	if len(sizes) != 3 {
		n.Problemf("found %d sizes: want [min, opt, max]", len(sizes))
		return
	}
	*r = Range{sizes[0], sizes[1], sizes[2]}
}

// Dims gives the shapes as [validators.Interface.WithDims] takes them.
func (s Shapes) Dims() map[string]validators.DimRange {
	dims := make(map[string]validators.DimRange, len(s))
	for symbol, r := range s {
		dims[symbol] = validators.DimRange(r)
	}
	return dims
}
