package format_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
)

// gguf writes the header of a GGUF file with these keys, whose values are texts or uint32, and tensors of type and sizes.
func gguf(keys [][2]any, tensors map[uint32][]uint64) []byte {
	text := func(to []byte, s string) []byte {
		return append(binary.LittleEndian.AppendUint64(to, uint64(len(s))), s...)
	}
	data := append([]byte("GGUF"), 3, 0, 0, 0)
	data = binary.LittleEndian.AppendUint64(data, uint64(len(tensors)))
	data = binary.LittleEndian.AppendUint64(data, uint64(len(keys)))
	for _, key := range keys {
		data = text(data, key[0].(string))
		switch value := key[1].(type) {
		case string:
			data = text(binary.LittleEndian.AppendUint32(data, 8), value)
		case uint32:
			data = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(data, 4), value)
		}
	}
	for kind, sizes := range tensors {
		data = binary.LittleEndian.AppendUint32(text(data, "w"), uint32(len(sizes)))
		for _, n := range sizes {
			data = binary.LittleEndian.AppendUint64(data, n)
		}
		data = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(data, kind), 0)
	}
	return data
}

func TestReadGGUF(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"whole": {gguf([][2]any{{"general.architecture", "llama"}, {"general.name", "Tiny"}, {"llama.block_count", uint32(2)}, {"llama.context_length", uint32(2048)}, {"tokenizer.ggml.model", "gpt2"}},
			map[uint32][]uint64{12: {256, 64}}), `llama, "Tiny", 16384 parameters as Q4_K, 2048 tokens of context, tokenizer gpt2`},
		"no keys":           {gguf(nil, map[uint32][]uint64{0: {3}}), "an architecture that it does not name, 3 parameters as F32, no tokenizer"},
		"a type of its own": {gguf([][2]any{{"general.architecture", "x"}}, map[uint32][]uint64{99: {1}}), "x, 1 parameters as type 99, no tokenizer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			header, err := format.ReadGGUF(bytes.NewReader(c.data), int64(len(c.data)))
			if err != nil || header.String() != c.want {
				t.Errorf("%s (%v), want %s", header, err, c.want)
			}
			cut := c.data[:len(c.data)-9]
			if _, err := format.ReadGGUF(bytes.NewReader(cut), int64(len(cut))); !registry.HasCode(err, registry.CodeUnsafe) {
				t.Errorf("cut: error %v, want %s", err, registry.CodeUnsafe)
			}
		})
	}
}
