package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Header has the facts about a model in the header of a GGUF file. Fields are empty if the header lacks them.
type Header struct {
	Architecture  string   // "llama"
	Name          string   // as its author calls it
	ContextLength uint64   // tokens
	Parameters    uint64   // numbers in all tensors
	Types         []string // types of the tensors, the most frequent first: "Q4_K", "F32"
	Tokenizer     string   // kind of the tokenizer in the file: "gpt2"; empty if there is none
}

// String describes the model in a line for messages.
func (h Header) String() string {
	said := []string{orElseText(h.Architecture, "an architecture that it does not name")}
	if h.Name != "" {
		said = append(said, fmt.Sprintf("%.60q", h.Name))
	}
	if said = append(said, fmt.Sprintf("%d parameters", h.Parameters)); len(h.Types) > 0 {
		said[len(said)-1] += " as " + strings.Join(h.Types, ", ")
	}
	if h.ContextLength > 0 {
		said = append(said, fmt.Sprintf("%d tokens of context", h.ContextLength))
	}
	if h.Tokenizer == "" {
		return strings.Join(append(said, "no tokenizer"), ", ")
	}
	return strings.Join(append(said, "tokenizer "+h.Tokenizer), ", ")
}

// Quantized reports whether tensors have other types than plain floats and whole numbers.
func (h Header) Quantized() bool {
	plain := []string{"F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64"}
	return slices.ContainsFunc(h.Types, func(t string) bool { return !slices.Contains(plain, t) })
}

func orElseText(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// tensorType is a type of tensors: its name, and how many numbers a block of so many bytes has.
type tensorType struct {
	name           string
	numbers, bytes uint64
}

// tensorTypes are the types of tensors (ggml.h, enum ggml_type; ggml-common.h, whose blocks they are); those of no use in
// files are left out.
var tensorTypes = map[uint32]tensorType{
	0: {"F32", 1, 4}, 1: {"F16", 1, 2}, 2: {"Q4_0", 32, 18}, 3: {"Q4_1", 32, 20}, 6: {"Q5_0", 32, 22}, 7: {"Q5_1", 32, 24}, 8: {"Q8_0", 32, 34}, 9: {"Q8_1", 32, 36},
	10: {"Q2_K", 256, 84}, 11: {"Q3_K", 256, 110}, 12: {"Q4_K", 256, 144}, 13: {"Q5_K", 256, 176}, 14: {"Q6_K", 256, 210}, 15: {"Q8_K", 256, 292},
	16: {"IQ2_XXS", 256, 66}, 17: {"IQ2_XS", 256, 74}, 18: {"IQ3_XXS", 256, 98}, 19: {"IQ1_S", 256, 50}, 20: {"IQ4_NL", 32, 18}, 21: {"IQ3_S", 256, 110}, 22: {"IQ2_S", 256, 82},
	23: {"IQ4_XS", 256, 136}, 24: {"I8", 1, 1}, 25: {"I16", 1, 2}, 26: {"I32", 1, 4}, 27: {"I64", 1, 8}, 28: {"F64", 1, 8}, 29: {"IQ1_M", 256, 56}, 30: {"BF16", 1, 2},
	34: {"TQ1_0", 256, 54}, 35: {"TQ2_0", 256, 66}, 39: {"MXFP4", 32, 17}, 40: {"NVFP4", 64, 36}, 41: {"Q1_0", 128, 18},
}

// header is what was kept of the keys and tensors.
func (g *reader) header() Header {
	arch := g.texts["general.architecture"]
	types := slices.SortedFunc(maps.Keys(g.types), func(a, b uint32) int {
		if g.types[a] != g.types[b] {
			return g.types[b] - g.types[a]
		}
		return int(a) - int(b)
	})
	h := Header{Architecture: arch, Name: g.texts["general.name"], ContextLength: g.numbers[arch+".context_length"],
		Parameters: g.weights, Tokenizer: g.texts["tokenizer.ggml.model"]}
	for _, t := range types {
		h.Types = append(h.Types, tensorTypes[t].name)
	}
	return h
}

// maxKept is the longest text that is kept of a header.
const maxKept = 256

// keptTexts are the keys whose texts are kept.
var keptTexts = []string{"general.architecture", "general.name", "tokenizer.ggml.model"}

// defaultAlignment is where data begins, and each tensor in it: at multiples of this, unless general.alignment says another number.
const defaultAlignment = 32

// check compares what the header says with the file: the data of all tensors is in it, and no more blocks are named
// than there are tensors.
func (g *reader) check() {
	if g.err != nil {
		return
	}
	alignment := uint64(defaultAlignment)
	if said, ok := g.numbers["general.alignment"]; ok {
		alignment = said
	}
	if alignment == 0 || alignment > 1<<20 {
		g.fail("its data is aligned to %d bytes", alignment)
		return
	}
	data := (uint64(g.at) + alignment - 1) / alignment * alignment
	if g.end > 0 && data+g.end > uint64(g.size) {
		g.fail("its tensors end at byte %d, and the file has %d: it is not whole", data+g.end, g.size)
	}
	for _, key := range slices.Sorted(maps.Keys(g.numbers)) {
		blocks := g.numbers[key]
		if strings.HasSuffix(key, ".block_count") && blocks > g.tensors {
			g.fail("it declares %d blocks, of %d tensors", blocks, g.tensors)
		}
	}
}

// keep reads the value of a key, and keeps it if it says something about the model.
func (g *reader) keep(key string, kind uint32) {
	_, number := g.numbers[key]
	if _, text := g.texts[key]; number || text {
		g.fail("the key %q is there twice", key) // of which readers may take either
		return
	}
	switch {
	case kind == valueString && slices.Contains(keptTexts, key):
		g.texts[key] = g.word("text", maxText)
	case isKeptNumber(key) && (kind == 4 || kind == 5):
		g.numbers[key] = uint64(g.u32())
	case isKeptNumber(key) && (kind == 10 || kind == 11):
		g.numbers[key] = binary.LittleEndian.Uint64(g.bytes(8))
	case isKeptNumber(key): // readers take a list of one number for the number
		g.fail("the value of %q is of type %d: expected a whole number of 4 or 8 bytes", key, kind)
	default:
		g.value(kind, 0)
	}
}

// isKeptNumber reports whether the value of a key is a whole number that is kept.
func isKeptNumber(key string) bool {
	return key == "general.alignment" || strings.HasSuffix(key, ".context_length") || strings.HasSuffix(key, ".block_count")
}

// word reads a text, and returns it if it is short.
func (g *reader) word(what string, most uint64) string {
	n := int64(g.count("bytes of a "+what, most))
	at := g.at
	g.skip(n)
	if g.err != nil || n > maxKept {
		return ""
	}
	text := make([]byte, n)
	if _, err := g.r.ReadAt(text, at); err != nil && !errors.Is(err, io.EOF) {
		g.fail("%v", err)
		return ""
	}
	return strings.ToValidUTF8(string(text), "?")
}
