package format

import (
	"bytes"
	"encoding/binary"
)

// counted walks over a little-endian length of n bytes, and as many bytes.
func (w *pickleWalk) counted(n int64) outcome {
	raw, res := w.bytes(n)
	if res != goOn {
		return res
	}
	var wide [8]byte
	copy(wide[:], raw)
	return w.skip(binary.LittleEndian.Uint64(wide[:]))
}

func (w *pickleWalk) skip(n uint64) outcome {
	if n > uint64(w.size-w.off) {
		return refuted
	}
	w.off += int64(n)
	return goOn
}

// line walks over an argument that ends with a newline and pleases ok.
func (w *pickleWalk) line(ok func([]byte) bool) outcome {
	var text []byte
	for {
		c, res := w.bytes(1)
		if res != goOn {
			return res
		}
		if c[0] == '\n' {
			break
		}
		if len(text) < maxName { // what is longer is judged by its beginning
			text = append(text, c[0])
		}
	}
	if !ok(text) {
		return refuted
	}
	return goOn
}

// bytes reads the next n bytes, at most 8, through a window. Where the file is
// longer than what r has of it, or than the bounds, the walk ends as proven.
func (w *pickleWalk) bytes(n int64) ([]byte, outcome) {
	if n > w.size-w.off {
		return nil, refuted
	}
	if w.off < w.base || w.off+n > w.base+int64(len(w.window)) {
		if !w.fill(n) {
			return nil, proven
		}
	}
	from := w.off - w.base
	w.off += n
	return w.window[from : from+n], goOn
}

// fill moves the window to the current offset.
func (w *pickleWalk) fill(n int64) bool {
	if w.read >= pickleBytes {
		return false
	}
	buf := make([]byte, min(4096, w.size-w.off))
	got, _ := w.r.ReadAt(buf, w.off)
	w.window, w.base, w.read = buf[:got], w.off, w.read+int64(got)
	return int64(got) >= n
}

// isNumber accepts at least every spelling that Python's int and float accept.
func isNumber(text []byte) bool {
	return len(bytes.Trim(text, "0123456789abcdefABCDEFxXoOlLinftyINFTY+-_. \t\r\v\f\x00")) == 0 || !isASCII(text)
}

// isQuoted accepts what the opcode STRING accepts: a text in quotes.
func isQuoted(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) >= 2 && (text[0] == '\'' || text[0] == '"') && text[len(text)-1] == text[0]
}

// isName accepts what can be imported or looked up: any file name is a module.
// It takes note of names that no ordinary module has.
func (w *pickleWalk) isName(text []byte) bool {
	w.named = w.named && !bytes.ContainsAny(text, " \t\r\"'(){}[]<>,;:=$#!?*&|\\")
	return len(text) > 0
}

func isASCII(text []byte) bool {
	for _, c := range text {
		if c >= 0x80 {
			return false
		}
	}
	return true
}
