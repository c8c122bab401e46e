package format

import "io"

const (
	pickleOps   = 1 << 16  // opcodes walked before the rest is believed
	pickleBytes = 16 << 20 // bytes read before the rest is believed
)

// looksPickled reports whether the size bytes of r, which begin with head, are
// a Python pickle. Protocols 2 to 5 begin with the opcode PROTO and a version.
// Protocols 0 and 1 begin with any opcode, mostly a letter, so their opcodes
// are walked as an unpickler would walk them, without doing what they say: a
// text runs into a letter that is no opcode, or whose operands are missing.
//
// The walk may only fail where Python would fail as well; beyond its bounds,
// and beyond the bytes that r has of the size, it believes the file a pickle.
// One thing is ambiguous: a list of words such as "cat", "dog" is also an
// import and then a failure. Only what goes on to call something is a pickle,
// or calls at once, with INST, what has the name of an ordinary module.
func looksPickled(head []byte, r io.ReaderAt, size int64) bool {
	if len(head) >= 2 && head[0] == 0x80 && head[1] <= 5 {
		return true
	}
	if len(head) == 0 || opcodes[head[0]].act == actInvalid {
		return false
	}
	w := pickleWalk{r: r, size: size, stack: []int{0}}
	return w.run()
}

// pickleWalk is the state of an unpickler without its values: how many there
// are above each mark.
type pickleWalk struct {
	r      io.ReaderAt
	size   int64
	off    int64
	read   int64
	stack  []int // values above the innermost mark come last
	global bool  // something was imported
	named  bool  // the last names to be imported were those of ordinary modules
	window []byte
	base   int64
}

// outcome is what one opcode led to.
type outcome int

const (
	goOn    outcome = iota
	refuted         // no unpickler would get past here
	proven          // a pickle: it ends, calls something, or outgrew the bounds
)

// run walks pickle after pickle to the end of the file, as a reader of a stream
// of them would.
func (w *pickleWalk) run() bool {
	for range pickleOps {
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

// step walks one opcode with its argument.
func (w *pickleWalk) step() outcome {
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

// argument walks over what follows an opcode.
func (w *pickleWalk) argument(arg argument) outcome {
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

// apply moves the stack as the opcode does.
func (w *pickleWalk) apply(op opcode) outcome {
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
func (w *pickleWalk) take(n int) bool {
	top := len(w.stack) - 1
	if w.stack[top] < n {
		return false
	}
	w.stack[top] -= n
	return true
}

// popMark removes the innermost mark and the values above it, at least atLeast.
func (w *pickleWalk) popMark(atLeast int) bool {
	top := len(w.stack) - 1
	if top == 0 || w.stack[top] < atLeast {
		return false
	}
	w.stack = w.stack[:top]
	return true
}

// pop removes a value, or the mark where it is on top.
func (w *pickleWalk) pop() outcome {
	if w.take(1) || w.popMark(0) {
		return goOn
	}
	return refuted
}

// stop ends one pickle. It is proven to be one if the file ends as well; more
// bytes may be the next pickle of a stream, or the file was a text.
func (w *pickleWalk) stop() outcome {
	if !w.take(1) {
		return refuted
	}
	if w.off == w.size {
		return proven
	}
	w.stack = append(w.stack[:0], 0)
	return goOn
}
