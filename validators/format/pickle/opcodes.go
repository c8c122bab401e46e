package pickle

// argument is the kind of an opcode's argument. A value below argLine is its length in bytes.
type argument int

const (
	argNone   argument = 0
	argLine   argument = iota + 100 // any text up to a newline
	argNumber                       // a number in text
	argQuoted                       // a text in quotes
	argName2                        // module and name, a line each
	argLen1                         // a length of 1 byte, and as many bytes
	argLen4                         // the same with 4 bytes
	argLen8                         // the same with 8 bytes
)

// action is the effect of an opcode other than moving values.
type action int

const (
	actInvalid action = iota
	actPlain          // only moves values
	actMark
	actPop
	actStop
	actGlobal // imports a name
	actCall   // calls what was imported, or sets its state
	actInst   // imports and calls
)

// opcode is the effect of one opcode on an unpickler's stack.
type opcode struct {
	act          action
	arg          argument
	marked       bool // removes everything down to the innermost mark
	minItems     int  // how many values must be above that mark
	pops, pushes int
}

// opcodes are those of pickle protocols 0 to 5 (Python's Lib/pickle.py; stack effects as in
// Lib/pickletools.py). Opcodes that read the top of the stack count as a pop and a push.
var opcodes = [256]opcode{
	'(':  {act: actMark},
	'.':  {act: actStop},
	'0':  {act: actPop},
	'1':  {act: actPlain, marked: true},
	'2':  {act: actPlain, pops: 1, pushes: 2},
	'F':  {act: actPlain, arg: argNumber, pushes: 1},
	'I':  {act: actPlain, arg: argNumber, pushes: 1},
	'J':  {act: actPlain, arg: 4, pushes: 1},
	'K':  {act: actPlain, arg: 1, pushes: 1},
	'L':  {act: actPlain, arg: argNumber, pushes: 1},
	'M':  {act: actPlain, arg: 2, pushes: 1},
	'N':  {act: actPlain, pushes: 1},
	'P':  {act: actPlain, arg: argLine, pushes: 1},
	'Q':  {act: actPlain, pops: 1, pushes: 1},
	'R':  {act: actCall, pops: 2, pushes: 1},
	'S':  {act: actPlain, arg: argQuoted, pushes: 1},
	'T':  {act: actPlain, arg: argLen4, pushes: 1},
	'U':  {act: actPlain, arg: argLen1, pushes: 1},
	'V':  {act: actPlain, arg: argLine, pushes: 1},
	'X':  {act: actPlain, arg: argLen4, pushes: 1},
	'a':  {act: actPlain, pops: 2, pushes: 1},
	'b':  {act: actCall, pops: 2, pushes: 1},
	'c':  {act: actGlobal, arg: argName2, pushes: 1},
	'd':  {act: actPlain, marked: true, pushes: 1},
	'}':  {act: actPlain, pushes: 1},
	'e':  {act: actPlain, marked: true, pops: 1, pushes: 1},
	'g':  {act: actPlain, arg: argNumber, pushes: 1},
	'h':  {act: actPlain, arg: 1, pushes: 1},
	'i':  {act: actInst, arg: argName2, marked: true, pushes: 1},
	'j':  {act: actPlain, arg: 4, pushes: 1},
	'l':  {act: actPlain, marked: true, pushes: 1},
	']':  {act: actPlain, pushes: 1},
	'o':  {act: actCall, marked: true, minItems: 1, pushes: 1},
	'p':  {act: actPlain, arg: argNumber, pops: 1, pushes: 1},
	'q':  {act: actPlain, arg: 1, pops: 1, pushes: 1},
	'r':  {act: actPlain, arg: 4, pops: 1, pushes: 1},
	's':  {act: actPlain, pops: 3, pushes: 1},
	't':  {act: actPlain, marked: true, pushes: 1},
	')':  {act: actPlain, pushes: 1},
	'u':  {act: actPlain, marked: true, pops: 1, pushes: 1},
	'G':  {act: actPlain, arg: 8, pushes: 1},
	'B':  {act: actPlain, arg: argLen4, pushes: 1},
	'C':  {act: actPlain, arg: argLen1, pushes: 1},
	0x80: {act: actPlain, arg: 1},
	0x81: {act: actCall, pops: 2, pushes: 1},
	0x82: {act: actGlobal, arg: 1, pushes: 1},
	0x83: {act: actGlobal, arg: 2, pushes: 1},
	0x84: {act: actGlobal, arg: 4, pushes: 1},
	0x85: {act: actPlain, pops: 1, pushes: 1},
	0x86: {act: actPlain, pops: 2, pushes: 1},
	0x87: {act: actPlain, pops: 3, pushes: 1},
	0x88: {act: actPlain, pushes: 1},
	0x89: {act: actPlain, pushes: 1},
	0x8a: {act: actPlain, arg: argLen1, pushes: 1},
	0x8b: {act: actPlain, arg: argLen4, pushes: 1},
	0x8c: {act: actPlain, arg: argLen1, pushes: 1},
	0x8d: {act: actPlain, arg: argLen8, pushes: 1},
	0x8e: {act: actPlain, arg: argLen8, pushes: 1},
	0x8f: {act: actPlain, pushes: 1},
	0x90: {act: actPlain, marked: true, pops: 1, pushes: 1},
	0x91: {act: actPlain, marked: true, pushes: 1},
	0x92: {act: actCall, pops: 3, pushes: 1},
	0x93: {act: actGlobal, pops: 2, pushes: 1},
	0x94: {act: actPlain, pops: 1, pushes: 1},
	0x95: {act: actPlain, arg: 8},
	0x96: {act: actPlain, arg: argLen8, pushes: 1},
	0x97: {act: actPlain, pushes: 1},
	0x98: {act: actPlain, pops: 1, pushes: 1},
}
