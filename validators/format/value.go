package format

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// maxTypeDepth bounds the nesting of types, such as sequences of maps of sequences.
const maxTypeDepth = 16

// value reads ValueInfoProto of the main graph into list.
func (rd *reader) value(f field, main bool, list *[]Value) error {
	if !main {
		return nil
	}
	v := Value{DType: dtypeName(0)}
	err := rd.each(f.span, "ValueInfoProto", func(g field) (err error) {
		if g.typ != protowire.BytesType {
			return rd.unexpected(g, "ValueInfoProto", 4)
		}
		switch g.num {
		case 1:
			v.Name, err = rd.text(g)
		case 2:
			v.DType, v.Shape, err = rd.valueType(g.span, 0)
		}
		return err
	})
	if err != nil {
		return err
	}
	if v.Name == "" {
		return invalidAt(f.at, "a graph input or output without a name")
	}
	*list = append(*list, v)
	return rd.keep(f.at, int64(len(v.Name)+len(v.DType)))
}

// valueType reads TypeProto.
func (rd *reader) valueType(sp span, depth int) (dtype string, shape []Dim, err error) {
	if depth > maxTypeDepth {
		return "", nil, invalidAt(sp.start, "types are nested more than %d deep", maxTypeDepth)
	}
	dtype = dtypeName(0)
	err = rd.each(sp, "TypeProto", func(f field) (err error) {
		if f.typ != protowire.BytesType {
			return nil
		}
		switch f.num {
		case 1:
			dtype, shape, err = rd.tensorType(f.span)
		case 4:
			dtype, err = rd.wrapped("sequence", f.span, depth)
		case 5:
			dtype, err = rd.wrapped("map", f.span, depth)
		case 7:
			dtype = "opaque()"
		case 8:
			dtype, _, err = rd.tensorType(f.span)
			dtype = "sparse(" + dtype + ")"
		case 9:
			dtype, err = rd.wrapped("optional", f.span, depth)
		}
		return err
	})
	return dtype, shape, err
}

// wrapped reads TypeProto.Sequence, Optional and Map: field 1 is the element's
// type, or the number of the key's type if it is a map's; field 2 is a map's
// value type.
func (rd *reader) wrapped(word string, sp span, depth int) (string, error) {
	key, inner := "", dtypeName(0)
	err := rd.each(sp, "TypeProto."+word, func(f field) (err error) {
		switch {
		case f.num == 1 && f.typ == protowire.VarintType:
			key = dtypeName(f.val) + ","
		case f.num <= 2 && f.typ == protowire.BytesType:
			inner, _, err = rd.valueType(f.span, depth+1)
		}
		return err
	})
	return word + "(" + key + inner + ")", err
}

// tensorType reads TypeProto.Tensor.
func (rd *reader) tensorType(sp span) (dtype string, shape []Dim, err error) {
	dtype = dtypeName(0)
	err = rd.each(sp, "TypeProto.Tensor", func(f field) (err error) {
		switch {
		case f.num == 1 && f.typ == protowire.VarintType:
			dtype = dtypeName(f.val)
		case f.num == 2 && f.typ == protowire.BytesType:
			shape, err = rd.shape(f.span)
		}
		return err
	})
	return dtype, shape, err
}

// shape reads TensorShapeProto.
func (rd *reader) shape(sp span) ([]Dim, error) {
	dims := []Dim{}
	err := rd.each(sp, "TensorShapeProto", func(f field) error {
		if f.num != 1 || f.typ != protowire.BytesType {
			return nil
		}
		if len(dims) == maxRank {
			return invalidAt(f.at, "a value of more than %d dimensions", maxRank)
		}
		d, err := rd.dimension(f)
		dims = append(dims, d)
		return err
	})
	return dims, err
}

// dimension reads TensorShapeProto.Dimension. Some exporters write -1 for an unknown size.
func (rd *reader) dimension(f field) (Dim, error) {
	var d Dim
	err := rd.each(f.span, "TensorShapeProto.Dimension", func(g field) (err error) {
		switch {
		case g.num == 1 && g.typ == protowire.VarintType && int64(g.val) >= 0:
			d = Dim{Known: true, Value: int64(g.val)}
		case g.num == 2 && g.typ == protowire.BytesType:
			d = Dim{}
			d.Param, err = rd.text(g)
		}
		return err
	})
	if err != nil {
		return Dim{}, err
	}
	return d, rd.keep(f.at, int64(len(d.Param)))
}
