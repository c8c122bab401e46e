package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// GGUFHeader is what the header of a GGUF file says about its model. Fields are empty where it does not say.
type GGUFHeader struct {
	Architecture  string   // "llama"
	Name          string   // as its author calls it
	ContextLength uint64   // tokens
	Parameters    uint64   // numbers in all tensors
	Types         []string // types of the tensors, the most frequent first: "Q4_K", "F32"
	Tokenizer     string   // kind of the tokenizer in the file: "gpt2"; empty if there is none
}

// String describes the model in a line for messages.
func (h GGUFHeader) String() string {
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

// Quantized reports whether tensors have other types than those of numbers by themselves: floats, and whole numbers.
func (h GGUFHeader) Quantized() bool {
	plain := []string{"F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64"}
	return slices.ContainsFunc(h.Types, func(t string) bool { return !slices.Contains(plain, t) })
}

func orElseText(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// ggufTypes are the names of tensor types (ggml.h, enum ggml_type); those of no use in files are left out.
var ggufTypes = map[uint32]string{
	0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K",
	15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16",
	26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 30: "BF16", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}

// header is what was kept of the keys and tensors.
func (g *ggufReader) header() GGUFHeader {
	arch := g.texts["general.architecture"]
	types := slices.SortedFunc(maps.Keys(g.types), func(a, b uint32) int {
		if g.types[a] != g.types[b] {
			return g.types[b] - g.types[a]
		}
		return int(a) - int(b)
	})
	h := GGUFHeader{Architecture: arch, Name: g.texts["general.name"], ContextLength: g.numbers[arch+".context_length"],
		Parameters: g.weights, Tokenizer: g.texts["tokenizer.ggml.model"]}
	for _, t := range types {
		h.Types = append(h.Types, orElseText(ggufTypes[t], fmt.Sprintf("type %d", t)))
	}
	return h
}

// ggufKept is the longest text that is kept of a header.
const ggufKept = 256

// ggufKeep are the keys whose values are kept, beside the length of the context.
var ggufKeep = []string{"general.architecture", "general.name", "tokenizer.ggml.model"}

// keep reads the value of a key, and keeps it if it says something about the model.
func (g *ggufReader) keep(key string, kind uint32) {
	switch {
	case kind == ggufString && slices.Contains(ggufKeep, key):
		g.texts[key] = g.word("text", ggufText)
	case strings.HasSuffix(key, ".context_length") && (kind == 4 || kind == 5):
		g.numbers[key] = uint64(g.u32())
	case strings.HasSuffix(key, ".context_length") && (kind == 10 || kind == 11):
		g.numbers[key] = binary.LittleEndian.Uint64(g.bytes(8))
	default:
		g.value(kind, 0)
	}
}

// word reads a text, and returns it if it is short.
func (g *ggufReader) word(what string, most uint64) string {
	n := int64(g.count("bytes of a "+what, most))
	at := g.at
	g.skip(n)
	if g.err != nil || n > ggufKept {
		return ""
	}
	text := make([]byte, n)
	if _, err := g.r.ReadAt(text, at); err != nil && !errors.Is(err, io.EOF) {
		g.fail("%v", err)
		return ""
	}
	return strings.ToValidUTF8(string(text), "?")
}
