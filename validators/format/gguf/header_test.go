package gguf_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/gguf"
)

// fileOf writes a GGUF file with these keys, whose values are texts or uint32, and a tensor of each type and sizes, at the beginning of the data.
// Types other than F32 and Q4_K have no data.
func fileOf(keys [][2]any, tensors map[uint32][]uint64) []byte {
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
	end := uint64(0)
	for kind, sizes := range tensors {
		bytes, ok := map[uint32]uint64{0: 4 * 256, 12: 144}[kind] // of 256 numbers
		numbers := uint64(1)
		for _, n := range sizes {
			numbers *= n
		}
		if ok {
			end = max(end, numbers*bytes/256)
		}
	}
	if end == 0 {
		return data
	}
	data = append(data, make([]byte, (32-len(data)%32)%32)...)
	return append(data, make([]byte, end)...)
}

func TestRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"whole": {fileOf([][2]any{{"general.architecture", "llama"}, {"general.name", "Tiny"}, {"llama.block_count", uint32(1)}, {"llama.context_length", uint32(2048)}, {"tokenizer.ggml.model", "gpt2"}},
			map[uint32][]uint64{12: {256, 64}}), `llama, "Tiny", 16384 parameters as Q4_K, 2048 tokens of context, tokenizer gpt2`},
		"no keys": {fileOf(nil, map[uint32][]uint64{0: {3}}), "an architecture that it does not name, 3 parameters as F32, no tokenizer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			header, err := gguf.Read(bytes.NewReader(c.data), int64(len(c.data)))
			if err != nil || header.String() != c.want {
				t.Errorf("%s (%v), want %s", header, err, c.want)
			}
			cut := c.data[:len(c.data)-9]
			if _, err := gguf.Read(bytes.NewReader(cut), int64(len(cut))); !registry.HasCode(err, registry.CodeUnsafe) {
				t.Errorf("cut: error %v, want %s", err, registry.CodeUnsafe)
			}
		})
	}
}

// What a reader would make room for, or look for beyond the end of the file, is refused.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	small := map[uint32][]uint64{0: {3}}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"more blocks than tensors":   {fileOf([][2]any{{"llama.block_count", uint32(2)}}, small), "it declares 2 blocks, of 1 tensors"},
		"blocks in a list":           {bytes.Replace(fileOf([][2]any{{"llama.block_count", uint32(1)}}, small), []byte("block_count\x04"), []byte("block_count\x09"), 1), `the value of "llama.block_count" is of type 9`},
		"blocks as a short number":   {bytes.Replace(fileOf([][2]any{{"llama.block_count", uint32(1)}}, small), []byte("block_count\x04"), []byte("block_count\x02"), 1), `the value of "llama.block_count" is of type 2`},
		"blocks said twice":          {fileOf([][2]any{{"llama.block_count", uint32(1000)}, {"llama.block_count", uint32(1)}}, small), `the key "llama.block_count" is there twice`},
		"no alignment":               {fileOf([][2]any{{"general.alignment", uint32(0)}}, small), "aligned to 0 bytes"},
		"an alignment beyond reason": {fileOf([][2]any{{"general.alignment", uint32(1<<20 + 1)}}, small), "aligned to 1048577 bytes"},
		"data that begins later":     {fileOf([][2]any{{"general.alignment", uint32(1 << 20)}}, small), "its tensors end at byte 1048588, and the file has"},
		"a type that is not known":   {fileOf(nil, map[uint32][]uint64{99: {1}}), "a tensor of type 99, with a size that is not known here"},
		"a text said twice":          {fileOf([][2]any{{"general.architecture", "a"}, {"general.architecture", "b"}}, small), `the key "general.architecture" is there twice`},
		"a text and a number":        {fileOf([][2]any{{"general.architecture", "a"}, {"general.architecture", uint32(1)}}, small), `the key "general.architecture" is there twice`},
		"tensors beyond reason":      {fileOf(nil, map[uint32][]uint64{1: {1 << 48}, 2: {1}}), "tensors of more than 281474976710656 numbers"},
		"sizes whose product wraps":  {fileOf(nil, map[uint32][]uint64{99: {1 << 32, 1 << 32}}), "a tensor of more than 281474976710656 numbers"},
		"a tensor beyond reason":     {fileOf(nil, map[uint32][]uint64{99: {1<<48 + 1}}), "a tensor of more than 281474976710656 numbers"},
		"a byte too few":             {fileOf(nil, small)[:75], "its tensors end at byte 76, and the file has 75"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := gguf.Read(bytes.NewReader(c.data), int64(len(c.data)))
			if !registry.HasCode(err, registry.CodeUnsafe) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
