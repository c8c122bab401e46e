package inference

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// tensorsOf gives every entry its elements: from its own JSON, or the next bytes of the binary data.
func tensorsOf(entries []entry, binary []byte, side Side, limits Limits) ([]Tensor, error) {
	seen := make(map[string]bool, len(entries))
	var out []Tensor
	left := limits.Bytes
	for _, e := range entries {
		info, err := e.info(seen)
		if err != nil {
			return nil, err
		}
		size, err := info.Bytes()
		if err != nil || size > left {
			return nil, registry.Errorf(registry.CodeInvalid, "tensor %q: shape %v: want at most %d bytes in all %s", e.Name, info.Shape, limits.Bytes, side)
		}
		left -= size
		var data []byte
		if n := e.Parameters.BinarySize; n != nil {
			if *n != size || *n > int64(len(binary)) {
				return nil, registry.Errorf(registry.CodeInvalid,
					"tensor %q: binary_data_size is %d, with %d bytes left in the body: %s %v takes %d", e.Name, *n, len(binary), e.Datatype, info.Shape, size)
			}
			data, binary = binary[:size:size], binary[size:]
		} else if data, err = elements(e, info); err != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "tensor %q: %w", e.Name, err)
		}
		out = append(out, Tensor{e.Name, tensor.Tensor{DType: info.DType, Shape: info.Shape, Data: data}})
	}
	if len(binary) > 0 {
		return nil, registry.Errorf(registry.CodeInvalid, "%d bytes of binary data belong to no tensor", len(binary))
	}
	return out, nil
}

// info checks what an entry says about its tensor.
func (e entry) info(seen map[string]bool) (tensor.Info, error) {
	if !isName(e.Name) {
		return tensor.Info{}, registry.Errorf(registry.CodeInvalid, "a tensor is called %.40q: want 1 to %d bytes of printable text", e.Name, maxName)
	}
	if seen[e.Name] {
		return tensor.Info{}, registry.Errorf(registry.CodeInvalid, "tensor %q occurs twice", e.Name)
	}
	seen[e.Name] = true
	dtype, ok := dtypes[e.Datatype]
	switch {
	case e.Datatype == "BYTES":
		return tensor.Info{}, registry.Errorf(registry.CodeInvalid, "tensor %q has texts (BYTES): cases have numbers", e.Name)
	case !ok:
		return tensor.Info{}, registry.Errorf(registry.CodeInvalid, "tensor %q: datatype %.40q is none of the protocol", e.Name, e.Datatype)
	case len(e.Shape) > maxShape:
		return tensor.Info{}, registry.Errorf(registry.CodeInvalid, "tensor %q: the shape has %d bytes: want at most %d", e.Name, len(e.Shape), maxShape)
	}
	info := tensor.Info{DType: dtype}
	if err := json.Unmarshal(e.Shape, &info.Shape); err != nil || info.Shape == nil {
		return tensor.Info{}, registry.Errorf(registry.CodeInvalid, "tensor %q: shape %.80q: want a list of sizes", e.Name, e.Shape)
	}
	if len(info.Shape) > maxRank {
		return tensor.Info{}, registry.Errorf(registry.CodeInvalid, "tensor %q: %d dimensions: want at most %d", e.Name, len(info.Shape), maxRank)
	}
	for _, size := range info.Shape {
		if size < 0 {
			return tensor.Info{}, registry.Errorf(registry.CodeInvalid, "tensor %q: shape %v has a negative size", e.Name, info.Shape)
		}
	}
	return info, nil
}

func isName(s string) bool {
	return s != "" && len(s) <= maxName && utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// elements encodes the numbers of the JSON array data, which may be flat or nested like the shape.
func elements(e entry, info tensor.Info) ([]byte, error) {
	if info.DType == tensor.Float16 || info.DType == tensor.BFloat16 {
		return nil, registry.Errorf(registry.CodeInvalid, "%s as JSON: want binary data", e.Datatype)
	}
	want, err := info.Len()
	switch {
	case err != nil:
		return nil, err
	case len(e.Data) == 0:
		return nil, registry.Errorf(registry.CodeInvalid, "no data")
	case want > int64(len(e.Data)): // before anything is allocated for them
		return nil, wrongCount(info, -1)
	}
	out := make([]byte, 0, want*int64(info.DType.Size()))
	depth, count := 0, int64(0)
	for rest := []byte(e.Data); ; {
		rest = bytes.TrimLeft(rest, " \t\r\n,")
		if len(rest) == 0 {
			break
		}
		switch rest[0] {
		case '[':
			if depth++; depth > max(len(info.Shape), 1) {
				return nil, registry.Errorf(registry.CodeInvalid, "data is nested deeper than shape %v", info.Shape)
			}
			rest = rest[1:]
			continue
		case ']':
			depth--
			rest = rest[1:]
			continue
		}
		word := rest
		if end := bytes.IndexAny(rest, " \t\r\n,[]"); end >= 0 {
			word = rest[:end]
		}
		if count++; count > want {
			return nil, wrongCount(info, count)
		}
		if out, err = appendElement(out, info.DType, string(word)); err != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "element %d: %.40q is no %s", count-1, word, e.Datatype)
		}
		rest = rest[len(word):]
	}
	if count != want {
		return nil, wrongCount(info, count)
	}
	return out, nil
}

func wrongCount(info tensor.Info, have int64) error {
	want, _ := info.Len()
	switch {
	case have < 0:
		return registry.Errorf(registry.CodeInvalid, "data has fewer than the %d elements of shape %v", want, info.Shape)
	case have > want:
		return registry.Errorf(registry.CodeInvalid, "data has more than the %d elements of shape %v", want, info.Shape)
	}
	return registry.Errorf(registry.CodeInvalid, "data has %d elements: shape %v takes %d", have, info.Shape, want)
}

// entry is one tensor as it stands in the JSON of a body.
type entry struct {
	Name       string          `json:"name"`
	Datatype   string          `json:"datatype"`
	Shape      json.RawMessage `json:"shape"`
	Data       json.RawMessage `json:"data"`
	Parameters struct {
		BinarySize *int64 `json:"binary_data_size"`
	} `json:"parameters"`
}
