package tensorfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// Write writes a safetensors file. Equal arguments give equal bytes: metadata comes first, then
// the tensors by element size, largest first, and by name, so that every tensor is aligned to
// its elements, as in the reference implementation. The header is padded with spaces to a
// multiple of 8.
func Write(w io.Writer, tensors map[string]tensor.Tensor, metadata map[string]string) error {
	infos := make(map[string]tensor.Info, len(tensors))
	for name, t := range tensors {
		if err := t.Validate(); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		infos[name] = t.Info()
	}
	l, err := newLayout(infos, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(l.head); err != nil {
		return err
	}
	for _, name := range l.names {
		if _, err := w.Write(tensors[name].Data); err != nil {
			return err
		}
	}
	return nil
}

// layout is the position of everything in a safetensors file.
type layout struct {
	head    []byte // length and header
	names   []string
	offsets map[string]int64 // from the start of the file
}

func newLayout(infos map[string]tensor.Info, metadata map[string]string) (layout, error) {
	l := layout{offsets: make(map[string]int64, len(infos))}
	l.names = slices.SortedFunc(maps.Keys(infos), func(a, b string) int {
		return cmp.Or(cmp.Compare(infos[b].DType.Size(), infos[a].DType.Size()), cmp.Compare(a, b))
	})
	text, at := bytes.NewBufferString("{"), int64(0)
	if len(metadata) > 0 {
		if err := appendMember(text, metadataKey, metadata); err != nil {
			return layout{}, err
		}
	}
	for _, name := range l.names {
		size, err := infos[name].Bytes()
		if err != nil {
			return layout{}, fmt.Errorf("tensor %q: %w", name, err)
		}
		if name == metadataKey || size > math.MaxInt64-maxSafetensorsHeader-8-at {
			return layout{}, tensor.Errorf(tensor.ErrMalformed, "tensor %q: the name is reserved or the file would overflow 64 bits", name)
		}
		l.offsets[name] = at
		if err := appendMember(text, name, newHeaderEntry(infos[name], at, at+size)); err != nil {
			return layout{}, err
		}
		at += size
	}
	text.WriteString("}")
	for text.Len()%8 != 0 {
		text.WriteByte(' ')
	}
	if text.Len() > maxSafetensorsHeader {
		return layout{}, tensor.Errorf(tensor.ErrLimit,
			"safetensors: a header of %d bytes: the format allows %d", text.Len(), maxSafetensorsHeader)
	}
	l.head = append(binary.LittleEndian.AppendUint64(nil, uint64(text.Len())), text.Bytes()...)
	for name := range l.offsets {
		l.offsets[name] += int64(len(l.head))
	}
	return l, nil
}

// headerEntry is one tensor in the header. Its keys have the order of the reference
// implementation.
type headerEntry struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

func newHeaderEntry(info tensor.Info, begin, end int64) headerEntry {
	shape := info.Shape
	if shape == nil {
		shape = []int64{} // null is not a shape
	}
	return headerEntry{info.DType.Safetensors(), shape, [2]int64{begin, end}}
}

// appendMember appends a key and its value to an object under construction. encoding/json would
// sort the keys of maps and silently replace invalid UTF-8, which could make two names equal.
func appendMember(text *bytes.Buffer, key string, value any) error {
	if !utf8.ValidString(key) {
		return tensor.Errorf(tensor.ErrMalformed, "name %q is not UTF-8", key)
	}
	if m, ok := value.(map[string]string); ok {
		for k, v := range m {
			if !utf8.ValidString(k) || !utf8.ValidString(v) {
				return tensor.Errorf(tensor.ErrMalformed, "metadata %q is not UTF-8", k)
			}
		}
	}
	if text.Len() > 1 {
		text.WriteByte(',')
	}
	for i, v := range []any{key, value} {
		encoded, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if i == 1 {
			text.WriteByte(':')
		}
		text.Write(encoded)
	}
	return nil
}
