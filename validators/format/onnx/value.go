package onnx

import (
	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/validators/format/protobuf"
)

// maxTypeDepth bounds the nesting of types, such as sequences of maps of sequences.
const maxTypeDepth = 16

// value reads ValueInfoProto of the main graph into list.
func (rd *reader) value(f protobuf.Field, main bool, list *[]Value) error {
	if !main {
		return nil
	}
	v := Value{DType: dtypeName(0)}
	err := rd.Each(f.Span, "ValueInfoProto", func(g protobuf.Field) (err error) {
		if g.Type != protowire.BytesType {
			return rd.unexpected(g, "ValueInfoProto", 4)
		}
		switch g.Num {
		case 1:
			v.Name, err = rd.Text(g)
		case 2:
			v.DType, v.Shape, err = rd.valueType(g.Span, 0)
		}
		return err
	})
	if err != nil {
		return err
	}
	if v.Name == "" {
		return protobuf.Invalid(f.At, "a graph input or output without a name")
	}
	*list = append(*list, v)
	return rd.Keep(f.At, int64(len(v.Name)+len(v.DType)))
}

// valueType reads TypeProto.
func (rd *reader) valueType(sp protobuf.Span, depth int) (dtype string, shape []Dim, err error) {
	if depth > maxTypeDepth {
		return "", nil, protobuf.Invalid(sp.Start, "types are nested more than %d deep", maxTypeDepth)
	}
	dtype = dtypeName(0)
	err = rd.Each(sp, "TypeProto", func(f protobuf.Field) (err error) {
		if f.Type != protowire.BytesType {
			return nil
		}
		switch f.Num {
		case 1:
			dtype, shape, err = rd.tensorType(f.Span)
		case 4:
			dtype, err = rd.wrapped("sequence", f.Span, depth)
		case 5:
			dtype, err = rd.wrapped("map", f.Span, depth)
		case 7:
			dtype = "opaque()"
		case 8:
			dtype, _, err = rd.tensorType(f.Span)
			dtype = "sparse(" + dtype + ")"
		case 9:
			dtype, err = rd.wrapped("optional", f.Span, depth)
		}
		return err
	})
	return dtype, shape, err
}

// wrapped reads TypeProto.Sequence, Optional and Map: field 1 is the element's
// type, or the number of the key's type if it is a map's; field 2 is a map's
// value type.
func (rd *reader) wrapped(word string, sp protobuf.Span, depth int) (string, error) {
	key, inner := "", dtypeName(0)
	err := rd.Each(sp, "TypeProto."+word, func(f protobuf.Field) (err error) {
		switch {
		case f.Num == 1 && f.Type == protowire.VarintType:
			key = dtypeName(f.Val) + ","
		case f.Num <= 2 && f.Type == protowire.BytesType:
			inner, _, err = rd.valueType(f.Span, depth+1)
		}
		return err
	})
	return word + "(" + key + inner + ")", err
}

// tensorType reads TypeProto.Tensor.
func (rd *reader) tensorType(sp protobuf.Span) (dtype string, shape []Dim, err error) {
	dtype = dtypeName(0)
	err = rd.Each(sp, "TypeProto.Tensor", func(f protobuf.Field) (err error) {
		switch {
		case f.Num == 1 && f.Type == protowire.VarintType:
			dtype = dtypeName(f.Val)
		case f.Num == 2 && f.Type == protowire.BytesType:
			shape, err = rd.shape(f.Span)
		}
		return err
	})
	return dtype, shape, err
}

// shape reads TensorShapeProto.
func (rd *reader) shape(sp protobuf.Span) ([]Dim, error) {
	dims := []Dim{}
	err := rd.Each(sp, "TensorShapeProto", func(f protobuf.Field) error {
		if f.Num != 1 || f.Type != protowire.BytesType {
			return nil
		}
		if len(dims) == maxRank {
			return protobuf.Invalid(f.At, "a value of more than %d dimensions", maxRank)
		}
		d, err := rd.dimension(f)
		dims = append(dims, d)
		return err
	})
	return dims, err
}

// dimension reads TensorShapeProto.Dimension. Some exporters write -1 for an unknown size.
func (rd *reader) dimension(f protobuf.Field) (Dim, error) {
	var d Dim
	err := rd.Each(f.Span, "TensorShapeProto.Dimension", func(g protobuf.Field) (err error) {
		switch {
		case g.Num == 1 && g.Type == protowire.VarintType && int64(g.Val) >= 0:
			d = Dim{Known: true, Value: int64(g.Val)}
		case g.Num == 2 && g.Type == protowire.BytesType:
			d = Dim{}
			d.Param, err = rd.Text(g)
		}
		return err
	})
	if err != nil {
		return Dim{}, err
	}
	return d, rd.Keep(f.At, int64(len(d.Param)))
}
