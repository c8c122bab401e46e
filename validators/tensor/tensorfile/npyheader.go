package tensorfile

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// npyHeader is the content of an npy header.
type npyHeader struct {
	info      tensor.Info
	bigEndian bool
	fortran   bool
	text      byte  // 'S' or 'U' for text, else 0
	width     int64 // of text, in characters
}

// parseNpyHeader parses the Python dict in an npy header, such as {'descr': '<f4',
// 'fortran_order': False, 'shape': (1, 3), }: exactly those keys in any order, without nesting.
// It evaluates nothing.
func parseNpyHeader(text []byte) (npyHeader, error) {
	var h npyHeader
	seen := map[string]bool{}
	p := pyParser{rest: string(text)}
	p.expect("{")
	for p.err == nil && !p.accept("}") {
		key := p.string()
		p.expect(":")
		if p.err == nil && seen[key] {
			return h, tensor.Errorf(tensor.ErrMalformed, "npy: key %.64q occurs twice in the header", key)
		}
		seen[key] = true
		switch key {
		case "descr":
			h.descr(&p)
		case "fortran_order":
			h.fortran = p.bool()
		case "shape":
			h.info.Shape = p.tuple()
		default:
			p.fail("one of the keys 'descr', 'fortran_order', 'shape'")
		}
		if !p.accept(",") && !p.peek("}") {
			p.fail("',' or '}'")
		}
	}
	if p.err != nil {
		return h, p.err
	}
	if strings.TrimRight(p.rest, " \n") != "" {
		return h, tensor.Errorf(tensor.ErrMalformed, "npy: header has %.64q behind its dict", p.rest)
	}
	if len(seen) != 3 {
		return h, tensor.Errorf(tensor.ErrMalformed, "npy: header lacks one of 'descr', 'fortran_order', 'shape'")
	}
	if h.text == 0 {
		return h, nil
	}
	if h.fortran && len(h.info.Shape) > 1 {
		return h, tensor.Errorf(tensor.ErrUnsupported, "npy: text in Fortran order: save numpy.ascontiguousarray of it")
	}
	h.info.Shape = append(h.info.Shape, h.width)
	return h, nil
}

// descr reads the dtype, numpy's array interface type string: byte order,
// kind, bytes per element.
func (h *npyHeader) descr(p *pyParser) {
	if p.peek("[") || p.peek("(") {
		p.abort(tensor.Errorf(tensor.ErrUnsupported, "npy: structured dtype: save one array per field"))
		return
	}
	s := p.string()
	if p.err != nil {
		return
	}
	order, kind := "|", s
	if s != "" && strings.Contains("<>|=", s[:1]) {
		order, kind = s[:1], s[1:]
	}
	if len(kind) > 1 && (kind[0] == 'S' || kind[0] == 'U') {
		h.textDescr(p, s, order, kind)
		return
	}
	d := npyDType(kind)
	switch {
	case strings.HasPrefix(kind, "O"):
		p.abort(tensor.Errorf(tensor.ErrUnsafe,
			"npy: dtype %q is an object array: its data is a pickle, which runs code when it is loaded; save an array of numbers", s))
	case strings.HasPrefix(kind, "V"):
		p.abort(tensor.Errorf(tensor.ErrUnsupported,
			"npy: dtype %.64q is opaque bytes (bfloat16 and float8 look so in npy): store the tensor as safetensors", s))
	case d == "" || d.Size() > 1 && order != "<" && order != ">":
		p.abort(tensor.Errorf(tensor.ErrUnsupported,
			"npy: unsupported dtype %.64q: convert the array to bool, an integer, a float of at most 64 bits or text", s))
	}
	h.info.DType, h.bigEndian = d, order == ">" && d.Size() > 1
}

func npyDType(kind string) tensor.DType {
	switch kind {
	case "b1":
		return tensor.Bool
	case "i1":
		return tensor.Int8
	case "i2":
		return tensor.Int16
	case "i4":
		return tensor.Int32
	case "i8":
		return tensor.Int64
	case "u1":
		return tensor.Uint8
	case "u2":
		return tensor.Uint16
	case "u4":
		return tensor.Uint32
	case "u8":
		return tensor.Uint64
	case "f2":
		return tensor.Float16
	case "f4":
		return tensor.Float32
	case "f8":
		return tensor.Float64
	}
	return ""
}

// normalize converts t, whose data is as in the file, to little-endian in C order.
func (h npyHeader) normalize(t tensor.Tensor) tensor.Tensor {
	size := t.DType.Size()
	if h.bigEndian {
		for element := range slices.Chunk(t.Data, size) {
			slices.Reverse(element)
		}
	}
	if !h.fortran || len(t.Shape) < 2 || len(t.Data) == 0 {
		return t
	}
	out := make([]byte, 0, len(t.Data))
	strides := make([]int, len(t.Shape)) // in elements, the first dimension the fastest
	stride := 1
	for axis, dim := range t.Shape {
		strides[axis] = stride
		stride *= int(dim)
	}
	index := make([]int64, len(t.Shape))
	for at := 0; len(out) < len(t.Data); {
		out = append(out, t.Data[at*size:(at+1)*size]...)
		for axis := len(index) - 1; axis >= 0; axis-- {
			index[axis]++
			at += strides[axis]
			if index[axis] < t.Shape[axis] {
				break
			}
			at -= int(index[axis]) * strides[axis]
			index[axis] = 0
		}
	}
	t.Data = out
	return t
}
