package onnx

import (
	"math"
	"math/bits"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/protobuf"
)

// maxRank is the highest number of axes; runtimes stop far below.
const maxRank = 1024

// tensor is the part of a TensorProto that is kept while it is read.
type tensor struct {
	name     string
	bytes    int64  // size of the elements
	dtype    uint64 // an enum, of which protobuf keeps 32 bits
	elements uint64 // product of the dimensions
	rank     int
	dims     []int64   // up to maxFlowRank
	raw      []byte    // of a small tensor: its elements
	numbers  []float64 // or these
	strings  int64     // size of string elements
	external bool
	location string
	offset   int64
	length   int64 // -1 if not given
}

// tensor reads TensorProto, except its elements.
func (rd *reader) tensor(f protobuf.Field) (tensor, error) {
	if rd.tensors++; rd.tensors > rd.lim.MaxTensors {
		return tensor{}, protobuf.Invalid(f.At, "more than %d tensors", rd.lim.MaxTensors)
	}
	t := tensor{elements: 1, length: -1}
	err := rd.Each(f.Span, "TensorProto", func(g protobuf.Field) (err error) {
		switch {
		case g.Num == 1:
			err = rd.dims(g, &t)
		case g.Num == 2 && g.Type == protowire.VarintType:
			t.dtype = uint64(uint32(g.Val))
		case g.Num == 6 && g.Type == protowire.BytesType:
			t.strings += g.Span.Len()
		case g.Num == 7 || g.Num == 9:
			err = rd.small(g, &t)
		case g.Num == 8 && g.Type == protowire.BytesType:
			t.name, err = rd.Text(g)
		case g.Num == 13 && g.Type == protowire.BytesType:
			err = rd.external(g, &t)
		case g.Num == 14 && g.Type == protowire.VarintType:
			t.external = uint32(g.Val) == 1
		}
		return err
	})
	if err == nil {
		err = rd.measure(f, &t)
	}
	if t.dtype < uint64(len(dtypes)) { // bounded, whatever a stranger writes
		rd.m.Tensors[dtypeName(t.dtype)]++
	}
	return t, err
}

// dims reads dimensions, packed as in proto3 or unpacked as in proto2.
func (rd *reader) dims(f protobuf.Field, t *tensor) error {
	if f.Type == protowire.VarintType {
		return t.dim(f.At, f.Val)
	}
	if f.Type != protowire.BytesType {
		return protobuf.Invalid(f.At, "dimensions of wire type %d", f.Type)
	}
	for at := f.Span.Start; at < f.Span.End; {
		val, next, err := rd.Varint(at, f.Span, "TensorProto.dims")
		if err != nil {
			return err
		}
		if err := t.dim(at, val); err != nil {
			return err
		}
		at = next
	}
	return nil
}

// dim multiplies the number of elements by one more dimension.
func (t *tensor) dim(at int64, val uint64) error {
	if t.rank++; t.rank > maxRank {
		return protobuf.Invalid(at, "a tensor of more than %d dimensions", maxRank)
	}
	if int64(val) < 0 {
		return protobuf.Invalid(at, "a tensor with the dimension %d", int64(val))
	}
	hi, lo := bits.Mul64(t.elements, val)
	if hi != 0 || lo > math.MaxInt64/128 {
		return protobuf.Invalid(at, "a tensor of more elements than there can be")
	}
	t.elements = lo
	if t.rank <= maxFlowRank {
		t.dims = append(t.dims, int64(val))
	}
	return nil
}

// external reads one entry of external_data.
func (rd *reader) external(f protobuf.Field, t *tensor) error {
	if f.Span.Len() > bound.MaxName {
		return protobuf.Invalid(f.At, "an entry of external_data of %d bytes; at most %d are allowed", f.Span.Len(), bound.MaxName)
	}
	key, value, err := entry(rd.Scanner, f)
	if err != nil {
		return err
	}
	switch key {
	case "location":
		if t.location != "" && t.location != value {
			return protobuf.Invalid(f.At, "a tensor with two locations, %q and %q", t.location, value)
		}
		t.location = value
	case "offset":
		t.offset, err = strconv.ParseInt(value, 10, 64)
	case "length":
		t.length, err = strconv.ParseInt(value, 10, 64)
	default:
		return nil
	}
	if err != nil || t.offset < 0 || t.length < -1 {
		return protobuf.Invalid(f.At, "external_data has the %s %q, expected a number of bytes", key, value)
	}
	return nil
}

// memoryAddress is the location with which ONNX Runtime and OpenVINO mark, inside a process, a
// tensor whose offset is a memory address. In a file it is an attack.
const memoryAddress = "_ORT_MEM_ADDR_"

// measure computes a tensor's size, and records the file that it needs. A location also counts
// on a tensor that is not declared external.
func (rd *reader) measure(f protobuf.Field, t *tensor) error {
	t.bytes = t.strings
	if t.dtype < uint64(len(dtypes)) {
		t.bytes += int64((t.elements*uint64(dtypes[t.dtype].bits) + 7) / 8)
	}
	switch {
	case t.location == "" && t.external:
		return protobuf.Invalid(f.At, "tensor %q is external data without a location", t.name)
	case t.location == "":
		return nil
	case strings.Contains(t.location, memoryAddress):
		return registry.Errorf(registry.CodeUnsafe,
			"at byte %d: tensor %q tells the runtime to read it from a memory address (location %q), which no file may; "+
				"do not load this model, and ask where it came from",
			f.At, t.name, t.location)
	}
	need := t.offset + max(t.length, 0)
	if t.length < 0 {
		need = t.offset + t.bytes
	}
	if need < 0 {
		return protobuf.Invalid(f.At, "tensor %q ends beyond any file", t.name)
	}
	if _, known := rd.m.ExternalBytes[t.location]; !known {
		if err := rd.Keep(f.At, int64(len(t.location))); err != nil {
			return err
		}
	}
	rd.m.ExternalBytes[t.location] = max(rd.m.ExternalBytes[t.location], need)
	return nil
}
