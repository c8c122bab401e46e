package format

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"

	"mlpromote.dev/mlpromote/registry"
)

// Limits on the header of a GGUF file (ggml, docs/gguf.md). The largest published models stay far
// below them.
const (
	ggufKeys    = 1 << 16
	ggufTensors = 1 << 16
	ggufKey     = 1<<16 - 1 // bytes, the format's own limit
	ggufText    = 16 << 20  // bytes of a text
	ggufItems   = 1 << 24   // items of an array
	ggufHeader  = 128 << 20 // bytes of the whole header
	ggufNesting = 4         // arrays in arrays
	ggufDims    = 8
	ggufNumbers = 1 << 48 // in a tensor
)

// ggufWidth is the size of the values of fixed size, by type.
var ggufWidth = map[uint32]int64{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

// The types of GGUF values that have no fixed size.
const (
	ggufString = 8
	ggufArray  = 9
)

// ReadGGUF walks the header of a GGUF file of size bytes, which says how much its readers make room for, and returns its facts
// about the model. Errors:
// CodeUnsafe for a header that is damaged or hostile.
func ReadGGUF(r io.ReaderAt, size int64) (GGUFHeader, error) {
	g := ggufReader{r: &window{r: r, size: size}, size: size, texts: map[string]string{}, numbers: map[string]uint64{}, types: map[uint32]int{}}
	version := g.u32At(4)
	if g.at = 8; g.err == nil && (version < 2 || version > 3) {
		g.fail("its version is %d: want 2 or 3, little-endian", version)
	}
	tensors, keys := g.count("tensors", ggufTensors), g.count("keys", ggufKeys)
	for range keys {
		key := g.word("key", ggufKey)
		g.keep(key, g.u32())
	}
	g.tensors = tensors
	for range tensors {
		g.tensor()
	}
	g.check()
	return g.header(), g.err
}

// ggufReader reads numbers until the first error.
type ggufReader struct {
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
func (g *ggufReader) fail(text string, args ...any) {
	if g.err == nil {
		g.err = registry.Errorf(registry.CodeUnsafe, "a GGUF file with a damaged or hostile header, at byte %d: %s", g.at, fmt.Sprintf(text, args...))
	}
}

func (g *ggufReader) bytes(n int64) []byte {
	var buf [8]byte
	if g.err == nil && (n > g.size-g.at || g.at > ggufHeader) {
		g.fail("it ends in its header, or the header has more than %d bytes", ggufHeader)
	}
	if g.err == nil {
		if _, err := io.ReadFull(io.NewSectionReader(g.r, g.at, n), buf[:n]); err != nil {
			g.fail("%v", err)
		}
		g.at += n
	}
	return buf[:n]
}

func (g *ggufReader) u32() uint32 { return binary.LittleEndian.Uint32(g.bytes(4)) }

func (g *ggufReader) u32At(at int64) uint32 {
	g.at = at
	return g.u32()
}

// count reads a number that something is repeated by; after an error it is 0.
func (g *ggufReader) count(what string, most uint64) uint64 {
	n := binary.LittleEndian.Uint64(g.bytes(8))
	if g.err == nil && n > most {
		g.fail("it declares %d %s: at most %d are read", n, what, most)
	}
	if g.err != nil {
		return 0
	}
	return n
}

func (g *ggufReader) skip(n int64) {
	if g.err == nil && n > g.size-g.at {
		g.fail("%d bytes are missing", n-(g.size-g.at))
	}
	g.at += n
}

func (g *ggufReader) text(what string, most uint64) {
	g.skip(int64(g.count("bytes of a "+what, most)))
}

func (g *ggufReader) value(kind uint32, depth int) {
	width, fixed := ggufWidth[kind]
	switch {
	case g.err != nil:
	case fixed:
		g.skip(width)
	case kind == ggufString:
		g.text("text", ggufText)
	case kind == ggufArray && depth < ggufNesting:
		g.array(depth + 1)
	default:
		g.fail("a value of type %d, or arrays nested more than %d deep", kind, ggufNesting)
	}
}

func (g *ggufReader) array(depth int) {
	kind := g.u32()
	n := g.count("items of an array", ggufItems)
	if width, fixed := ggufWidth[kind]; fixed {
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
func (g *ggufReader) tensor() {
	g.text("name", ggufKey)
	dims := g.u32()
	if g.err == nil && dims > ggufDims {
		g.fail("a tensor of %d dimensions: at most %d are read", dims, ggufDims)
	}
	if g.err != nil {
		return
	}
	weights := uint64(1)
	for range dims {
		high, low := bits.Mul64(weights, binary.LittleEndian.Uint64(g.bytes(8)))
		if weights = low; high > 0 || low > ggufNumbers {
			g.fail("a tensor of more than %d numbers", uint64(ggufNumbers))
			return
		}
	}
	if g.weights += weights; g.weights > ggufNumbers {
		g.fail("tensors of more than %d numbers", uint64(ggufNumbers))
		return
	}
	kind := g.u32()
	block, known := ggufTypes[kind]
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
