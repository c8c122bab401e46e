// Package gguf reads the header of GGUF files, the models of llama.cpp.
package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
)

// Limits on the header of a GGUF file (ggml, docs/gguf.md). The largest published models stay far
// below them.
const (
	maxKeys    = 1 << 16
	maxTensors = 1 << 16
	maxKey     = 1<<16 - 1 // bytes, the format's own limit
	maxText    = 16 << 20  // bytes of a text
	maxItems   = 1 << 24   // items of an array
	maxHeader  = 128 << 20 // bytes of the whole header
	maxNesting = 4         // arrays in arrays
	maxDims    = 8
	maxNumbers = 1 << 48 // in a tensor
)

// valueWidths is the size of the values of fixed size, by type.
var valueWidths = map[uint32]int64{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

// The types of GGUF values that have no fixed size.
const (
	valueString = 8
	valueArray  = 9
)

// Read walks the header of a GGUF file of size bytes, by which its readers allocate memory, and returns its facts about
// the model. Errors:
// CodeUnsafe for a header that is damaged or hostile.
func Read(r io.ReaderAt, size int64) (Header, error) {
	g := reader{r: &bound.Window{R: r, Size: size}, size: size, texts: map[string]string{}, numbers: map[string]uint64{}, types: map[uint32]int{}}
	version := g.u32At(4)
	if g.at = 8; g.err == nil && (version < 2 || version > 3) {
		g.fail("its version is %d: want 2 or 3, little-endian", version)
	}
	tensors, keys := g.count("tensors", maxTensors), g.count("keys", maxKeys)
	for range keys {
		key := g.word("key", maxKey)
		g.keep(key, g.u32())
	}
	g.tensors = tensors
	for range tensors {
		g.tensor()
	}
	g.check()
	return g.header(), g.err
}

// reader reads numbers until the first error.
type reader struct {
	r        io.ReaderAt
	size, at int64
	err      error

	texts   map[string]string // values of keys that are short texts
	numbers map[string]uint64 // and of those that are whole numbers
	types   map[uint32]int    // tensors by type
	weights uint64            // numbers in all tensors
	tensors uint64
	end     uint64 // of the tensor that ends last, in bytes of the data
}

// fail keeps the first error.
func (g *reader) fail(text string, args ...any) {
	if g.err == nil {
		g.err = registry.Errorf(registry.CodeUnsafe, "a GGUF file with a damaged or hostile header, at byte %d: %s", g.at, fmt.Sprintf(text, args...))
	}
}

func (g *reader) bytes(n int64) []byte {
	var buf [8]byte
	if g.err == nil && (n > g.size-g.at || g.at > maxHeader) {
		g.fail("it ends in its header, or the header has more than %d bytes", maxHeader)
	}
	if g.err == nil {
		if _, err := io.ReadFull(io.NewSectionReader(g.r, g.at, n), buf[:n]); err != nil {
			g.fail("%v", err)
		}
		g.at += n
	}
	return buf[:n]
}

func (g *reader) u32() uint32 { return binary.LittleEndian.Uint32(g.bytes(4)) }

func (g *reader) u32At(at int64) uint32 {
	g.at = at
	return g.u32()
}

// count reads a number that something is repeated by; after an error it is 0.
func (g *reader) count(what string, most uint64) uint64 {
	n := binary.LittleEndian.Uint64(g.bytes(8))
	if g.err == nil && n > most {
		g.fail("it declares %d %s: at most %d are read", n, what, most)
	}
	if g.err != nil {
		return 0
	}
	return n
}

func (g *reader) skip(n int64) {
	if g.err == nil && n > g.size-g.at {
		g.fail("%d bytes are missing", n-(g.size-g.at))
	}
	g.at += n
}

func (g *reader) text(what string, most uint64) {
	g.skip(int64(g.count("bytes of a "+what, most)))
}

func (g *reader) value(kind uint32, depth int) {
	width, fixed := valueWidths[kind]
	switch {
	case g.err != nil:
	case fixed:
		g.skip(width)
	case kind == valueString:
		g.text("text", maxText)
	case kind == valueArray && depth < maxNesting:
		g.array(depth + 1)
	default:
		g.fail("a value of type %d, or arrays nested more than %d deep", kind, maxNesting)
	}
}

func (g *reader) array(depth int) {
	kind := g.u32()
	n := g.count("items of an array", maxItems)
	if width, fixed := valueWidths[kind]; fixed {
		g.skip(int64(n) * width)
		return
	}
	for range n {
		if g.value(kind, depth); g.err != nil {
			return
		}
	}
}

// tensor reads the description of a tensor: name, dimensions, type, offset.
func (g *reader) tensor() {
	g.text("name", maxKey)
	dims := g.u32()
	if g.err == nil && dims > maxDims {
		g.fail("a tensor of %d dimensions: at most %d are read", dims, maxDims)
	}
	if g.err != nil {
		return
	}
	weights := uint64(1)
	for range dims {
		high, low := bits.Mul64(weights, binary.LittleEndian.Uint64(g.bytes(8)))
		if weights = low; high > 0 || low > maxNumbers {
			g.fail("a tensor of more than %d numbers", uint64(maxNumbers))
			return
		}
	}
	if g.weights += weights; g.weights > maxNumbers {
		g.fail("tensors of more than %d numbers", uint64(maxNumbers))
		return
	}
	kind := g.u32()
	block, known := tensorTypes[kind]
	if g.err == nil && !known {
		g.fail("a tensor of type %d, with a size that is not known here", kind)
	}
	if g.err != nil {
		return
	}
	g.types[kind]++
	offset := binary.LittleEndian.Uint64(g.bytes(8))
	if g.err == nil && offset > uint64(g.size) {
		g.fail("a tensor at byte %d of its data, in a file of %d", offset, g.size)
		return
	}
	g.end = max(g.end, offset+(weights+block.numbers-1)/block.numbers*block.bytes)
}
