package pickle

import (
	"bytes"
	"encoding/binary"

	"mlpromote.dev/mlpromote/validators/format/bound"
)

// counted skips a little-endian length of n bytes, and as many bytes.
func (w *walk) counted(n int64) outcome {
	raw, res := w.bytes(n)
	if res != goOn {
		return res
	}
	var wide [8]byte
	copy(wide[:], raw)
	return w.skip(binary.LittleEndian.Uint64(wide[:]))
}

func (w *walk) skip(n uint64) outcome {
	if n > uint64(w.size-w.off) {
		return refuted
	}
	w.off += int64(n)
	return goOn
}

// line skips an argument that ends with a newline and satisfies ok.
func (w *walk) line(ok func([]byte) bool) outcome {
	var text []byte
	for {
		c, res := w.bytes(1)
		if res != goOn {
			return res
		}
		if c[0] == '\n' {
			break
		}
		if len(text) < bound.MaxName { // only the beginning of a longer line is checked
			text = append(text, c[0])
		}
	}
	if !ok(text) {
		return refuted
	}
	return goOn
}

// bytes reads the next n bytes, at most 8, through a window. If the file is longer than the
// bytes that r has, or than the limits, the walk ends and the file counts as a pickle.
func (w *walk) bytes(n int64) ([]byte, outcome) {
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
func (w *walk) fill(n int64) bool {
	if w.read >= maxBytes {
		return false
	}
	buf := make([]byte, min(4096, w.size-w.off))
	got, _ := w.r.ReadAt(buf, w.off)
	w.window, w.base, w.read = buf[:got], w.off, w.read+int64(got)
	return int64(got) >= n
}

// isNumber accepts all spellings that Python's int and float accept, and possibly more.
func isNumber(text []byte) bool {
	return len(bytes.Trim(text, "0123456789abcdefABCDEFxXoOlLinftyINFTY+-_. \t\r\v\f\x00")) == 0 || !isASCII(text)
}

// isQuoted accepts the argument of the opcode STRING: a text in quotes.
func isQuoted(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) >= 2 && (text[0] == '\'' || text[0] == '"') && text[len(text)-1] == text[0]
}

// isName accepts names that can be imported or looked up: any file name can be a module. It
// records names that ordinary modules do not have.
func (w *walk) isName(text []byte) bool {
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
