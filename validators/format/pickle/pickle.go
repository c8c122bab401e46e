// Package pickle recognizes Python pickles, of any protocol, without executing them.
package pickle

import "io"

const (
	maxOps   = 1 << 16  // after so many opcodes, the file is assumed to be a pickle
	maxBytes = 16 << 20 // after so many bytes, the file is assumed to be a pickle
)

// Is reports whether the size bytes of r, which begin with head, are a Python pickle.
// Protocols 2 to 5 begin with the opcode PROTO, a version, and another opcode. Protocols 0 and 1 can begin with
// any opcode, usually a letter. So it walks the opcodes like an unpickler, without executing
// them: a text soon has a letter that is not an opcode, or that lacks operands.
//
// The walk must not fail where Python would succeed. Beyond its limits, and beyond the bytes
// that r has, it assumes that the file is a pickle. One case is ambiguous: a list of words such
// as "cat", "dog" is also an import and then a failure. The file is taken as a pickle only if
// it then calls something, or calls the name of an ordinary module at once, with INST.
func Is(head []byte, r io.ReaderAt, size int64) bool {
	if len(head) >= 2 && head[0] == 0x80 && head[1] <= 5 {
		return opens(r, size)
	}
	if len(head) == 0 || opcodes[head[0]].act == actInvalid {
		return false
	}
	w := walk{r: r, size: size, stack: []int{0}}
	return w.run()
}

// opens reports whether something that begins with the opcode PROTO goes on like a pickle.
// Otherwise an unpickler stops before it does anything. The length of a safetensors header can be
// such two bytes.
func opens(r io.ReaderAt, size int64) bool {
	w := walk{r: r, size: size, stack: []int{0}, off: 2}
	code, res := w.bytes(1)
	return res != goOn || opcodes[code[0]].act != actInvalid
}

// walk is the state of an unpickler without its values: the number of values above each
// mark.
type walk struct {
	r      io.ReaderAt
	size   int64
	off    int64
	read   int64
	stack  []int // values above the innermost mark come last
	global bool  // something was imported
	named  bool  // the last imported names are those of ordinary modules
	window []byte
	base   int64
}

// outcome is the result of one opcode.
type outcome int

const (
	goOn    outcome = iota
	refuted         // an unpickler would fail here
	proven          // a pickle: it ends, calls something, or exceeded the limits
)

// run walks one pickle after the other to the end of the file, like a reader of a stream of
// pickles.
func (w *walk) run() bool {
	for range maxOps {
		if w.off >= w.size {
			return false
		}
		switch w.step() {
		case refuted:
			return false
		case proven:
			return true
		}
	}
	return true
}

// step walks one opcode and its argument.
func (w *walk) step() outcome {
	code, res := w.bytes(1)
	if res != goOn {
		return res
	}
	op := opcodes[code[0]]
	if op.act == actInvalid {
		return refuted
	}
	did := w.apply(op)
	if did == refuted {
		return refuted
	}
	if res := w.argument(op.arg); res != goOn {
		return res
	}
	if op.act == actInst && w.named {
		return proven
	}
	return did
}

// argument skips the argument of an opcode.
func (w *walk) argument(arg argument) outcome {
	switch arg {
	case argNone:
		return goOn
	case argName2:
		w.named = true
		if res := w.line(w.isName); res != goOn {
			return res
		}
		return w.line(w.isName)
	case argNumber:
		return w.line(isNumber)
	case argQuoted:
		return w.line(isQuoted)
	case argLine:
		return w.line(func([]byte) bool { return true })
	case argLen1:
		return w.counted(1)
	case argLen4:
		return w.counted(4)
	case argLen8:
		return w.counted(8)
	}
	return w.skip(uint64(arg))
}

// apply changes the stack as the opcode does.
func (w *walk) apply(op opcode) outcome {
	switch op.act {
	case actMark:
		w.stack = append(w.stack, 0)
		return goOn
	case actPop:
		return w.pop()
	case actStop:
		return w.stop()
	}
	if op.marked && !w.popMark(op.minItems) || !w.take(op.pops) {
		return refuted
	}
	w.stack[len(w.stack)-1] += op.pushes
	if op.act == actCall && w.global {
		return proven
	}
	w.global = w.global || op.act == actGlobal || op.act == actInst
	return goOn
}

// take removes n values from above the innermost mark.
func (w *walk) take(n int) bool {
	top := len(w.stack) - 1
	if w.stack[top] < n {
		return false
	}
	w.stack[top] -= n
	return true
}

// popMark removes the innermost mark and the values above it, at least atLeast.
func (w *walk) popMark(atLeast int) bool {
	top := len(w.stack) - 1
	if top == 0 || w.stack[top] < atLeast {
		return false
	}
	w.stack = w.stack[:top]
	return true
}

// pop removes a value, or the mark if it is on top.
func (w *walk) pop() outcome {
	if w.take(1) || w.popMark(0) {
		return goOn
	}
	return refuted
}

// stop ends one pickle. If the file ends too, it is a pickle. Otherwise the next pickle of a
// stream may follow, or the file is a text.
func (w *walk) stop() outcome {
	if !w.take(1) {
		return refuted
	}
	if w.off == w.size {
		return proven
	}
	w.stack = append(w.stack[:0], 0)
	return goOn
}
