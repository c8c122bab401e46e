package tensorfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/validators/tensor"
)

const metadataKey = "__metadata__"

// header is the JSON header of a safetensors file.
type header struct {
	entries  map[string]entry
	metadata map[string]string
}

// entry is one tensor; its bytes are [begin, end) of the data section.
type entry struct {
	info       tensor.Info
	begin, end int64
}

// checkLayout checks that the entries cover size bytes without gap or overlap, and that the
// length of every entry matches its dtype and shape.
func (h header) checkLayout(size int64) error {
	names := slices.SortedFunc(maps.Keys(h.entries), func(a, b string) int {
		x, y := h.entries[a], h.entries[b]
		return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(x.end, y.end))
	})
	var at int64
	for _, name := range names {
		e := h.entries[name]
		want, err := e.info.Bytes()
		if err != nil {
			return tensor.Errorf(tensor.ErrMalformed, "safetensors: tensor %.256q: %v", name, err)
		}
		if e.begin != at {
			return tensor.Errorf(tensor.ErrMalformed,
				"safetensors: tensor %.256q begins at %d, expected %d: data has a hole or overlaps", name, e.begin, at)
		}
		if e.end < e.begin || e.end-e.begin != want {
			return tensor.Errorf(tensor.ErrMalformed, "safetensors: tensor %.256q: data_offsets [%d, %d] do not hold the %d bytes of %s %v",
				name, e.begin, e.end, want, e.info.DType, e.info.Shape)
		}
		at = e.end
	}
	if at != size {
		return tensor.Errorf(tensor.ErrMalformed,
			"safetensors: the tensors have %d bytes, the file holds %d: it is cut short or something was appended", at, size)
	}
	return nil
}

// parseHeader reads the header's JSON token by token, because decoding into maps or structs
// hides repeated keys and ignores their case.
func parseHeader(text []byte, limits Limits) (header, error) {
	if len(text) == 0 || text[0] != '{' {
		return header{}, tensor.Errorf(tensor.ErrMalformed, "safetensors: the header does not begin with '{'; is this a safetensors file?")
	}
	if !utf8.Valid(text) || !json.Valid(text) {
		return header{}, tensor.Errorf(tensor.ErrMalformed, "safetensors: the header is not one JSON object in UTF-8")
	}
	p := headerParser{dec: json.NewDecoder(bytes.NewReader(text)), limits: limits}
	p.dec.UseNumber()
	h := header{entries: map[string]entry{}}
	err := p.object("the header", func(key string) (err error) {
		if key == metadataKey {
			h.metadata, err = p.strings()
			return err
		}
		if len(h.entries) >= limits.MaxTensors {
			return tensor.Errorf(tensor.ErrLimit, "safetensors: more than %d tensors, the limit", limits.MaxTensors)
		}
		h.entries[key], err = p.entry(key)
		return err
	})
	if err != nil {
		return header{}, err
	}
	if rest := text[p.dec.InputOffset():]; len(bytes.Trim(rest, " ")) != 0 {
		return header{}, tensor.Errorf(tensor.ErrMalformed, "safetensors: the header is padded with something else than spaces")
	}
	return h, nil
}

// headerParser walks over JSON that is known to be valid.
type headerParser struct {
	dec    *json.Decoder
	limits Limits
}

// object reads an object, calling member after each key; member reads the value.
func (p headerParser) object(what string, member func(key string) error) error {
	if err := p.delim(what, '{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string) // valid JSON has no other keys
		if seen[key] {
			return tensor.Errorf(tensor.ErrMalformed, "safetensors: key %.256q occurs twice in %s", key, what)
		}
		seen[key] = true
		if err := member(key); err != nil {
			return err
		}
	}
	return p.delim(what, '}')
}

func (p headerParser) entry(name string) (entry, error) {
	what := strconv.QuoteToGraphic(name[:min(len(name), 256)])
	var e entry
	var hasDType bool
	var offsets []int64
	err := p.object(what, func(key string) (err error) {
		switch key {
		case "dtype":
			hasDType = true
			e.info.DType, err = p.dtype(what)
		case "shape":
			e.info.Shape, err = p.integers(what+" shape", p.limits.MaxRank)
		case "data_offsets":
			offsets, err = p.integers(what+" data_offsets", 2)
		default:
			err = tensor.Errorf(tensor.ErrMalformed,
				"safetensors: %s has an unknown key %.64q: expected dtype, shape, data_offsets", what, key)
		}
		return err
	})
	if err != nil {
		return entry{}, err
	}
	if !hasDType || e.info.Shape == nil || len(offsets) != 2 {
		return entry{}, tensor.Errorf(tensor.ErrMalformed, "safetensors: %s needs a dtype, a shape and two data_offsets", what)
	}
	e.begin, e.end = offsets[0], offsets[1]
	return e, nil
}

func (p headerParser) dtype(what string) (tensor.DType, error) {
	name, err := p.string(what + " dtype")
	if err != nil {
		return "", err
	}
	d, err := tensor.FromSafetensors(name)
	if err != nil {
		return "", tensor.Errorf(tensor.ErrUnsupported, "tensor %s: %v", what, err)
	}
	return d, nil
}

func (p headerParser) strings() (map[string]string, error) {
	out := map[string]string{}
	err := p.object(metadataKey, func(key string) (err error) {
		out[key], err = p.string(metadataKey)
		return err
	})
	return out, err
}

// integers reads an array of at most limit integers from 0 to 2^63-1.
func (p headerParser) integers(what string, limit int) ([]int64, error) {
	if err := p.delim(what, '['); err != nil {
		return nil, err
	}
	out := []int64{}
	for p.dec.More() {
		if len(out) >= limit {
			return nil, tensor.Errorf(tensor.ErrLimit, "safetensors: %s has more than %d entries, the limit", what, limit)
		}
		token, err := p.dec.Token()
		if err != nil {
			return nil, err
		}
		number, _ := token.(json.Number)
		n, err := strconv.ParseUint(number.String(), 10, 63)
		if err != nil {
			return nil, tensor.Errorf(tensor.ErrMalformed, "safetensors: %s has %.64q: expected an integer from 0 to 2^63-1", what, token)
		}
		out = append(out, int64(n))
	}
	return out, p.delim(what, ']')
}

func (p headerParser) string(what string) (string, error) {
	token, err := p.dec.Token()
	if err != nil {
		return "", err
	}
	s, ok := token.(string)
	if !ok {
		return "", tensor.Errorf(tensor.ErrMalformed, "safetensors: %s holds something else than a string", what)
	}
	return s, nil
}

func (p headerParser) delim(what string, want json.Delim) error {
	token, err := p.dec.Token()
	if err != nil {
		return err
	}
	if token != want {
		return tensor.Errorf(tensor.ErrMalformed, "safetensors: %s: expected %q", what, want.String())
	}
	return nil
}
