// Package classical checks models of XGBoost and LightGBM, and PMML. Their readers trust the sizes and the nesting in a file, so
// each check reads all of it, in bounded memory.
package classical

import (
	"bytes"
	"errors"
	"io"
	"regexp"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
)

// maxBoosterDepth is the deepest nesting in a file of XGBoost that is read. XGBoost itself writes at most 8 levels,
// because a tree is a set of lists there.
const maxBoosterDepth = 32

// xgboostHead is how XGBoost's JSON begins: its keys are "learner" and "version".
var xgboostHead = regexp.MustCompile(`^\s*\{\s*("version"\s*:\s*\[[0-9,\s]*\]\s*,\s*)?"learner"\s*:\s*\{`)

// IsXGBoost recognizes what Booster.save_model writes: JSON or UBJSON of the same content (XGBoost,
// doc/model.schema).
func IsXGBoost(head []byte) bool {
	return isUBJ(head) || xgboostHead.Match(head)
}

// isUBJ recognizes an object of UBJSON whose first key is "learner" or "version".
func isUBJ(head []byte) bool {
	if len(head) < 2 || head[0] != '{' {
		return false
	}
	width, ok := ubjWidth[head[1]]
	if !ok || len(head) < 2+width {
		return false
	}
	rest := head[2+width:]
	return head[1+width] == 7 && (bytes.HasPrefix(rest, []byte("learner{")) || bytes.HasPrefix(rest, []byte("version[")))
}

// CheckXGBoost walks a file of XGBoost to its end. Errors: CodeUnsafe for absurd nesting and sizes,
// CodeInvalid for a file that is cut, or has something behind its end.
func CheckXGBoost(r io.ReaderAt, size int64) error {
	head := make([]byte, min(size, 64))
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, size), head); err != nil {
		return err
	}
	if isUBJ(head) {
		u := ubjReader{r: &bound.Window{R: r, Size: size}, size: size}
		u.value(u.byte(), 0)
		if u.err == nil && u.at != size {
			u.cut("it has %d bytes behind its end", size-u.at)
		}
		return u.err
	}
	return checkNesting(r, size)
}

// checkNesting reads JSON to its end, for its nesting alone: its reader does the rest.
func checkNesting(r io.ReaderAt, size int64) error {
	text := newText(r, size)
	depth, inside, escaped := 0, false, false
	for {
		c, err := text.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			if depth != 0 || inside {
				return registry.Errorf(registry.CodeInvalid, "the JSON ends at byte %d with %d of its objects and lists open: copy or save it again", size, depth)
			}
			return nil
		case err != nil:
			return err
		case inside:
			inside = c != '"' || escaped
			escaped = c == '\\' && !escaped
		case c == '"':
			inside = true
		case c == '{', c == '[':
			if depth++; depth > maxBoosterDepth {
				return registry.Errorf(registry.CodeUnsafe,
					"the JSON is nested more than %d deep at byte %d, which no model of XGBoost is", maxBoosterDepth, text.at)
			}
		case c == '}', c == ']':
			depth--
		case c < ' ' && c != '\n' && c != '\r' && c != '\t':
			return registry.Errorf(registry.CodeInvalid, "byte %d is a control character, which JSON does not have", text.at)
		}
	}
}

// ubjWidth has the bytes of UBJSON's numbers by their marker (ubjson.org, type reference).
var ubjWidth = map[byte]int{'i': 1, 'U': 1, 'I': 2, 'l': 4, 'L': 8, 'd': 4, 'D': 8, 'C': 1, 'Z': 0, 'T': 0, 'F': 0, 'N': 0}

// ubjReader walks UBJSON until its first error.
type ubjReader struct {
	r        io.ReaderAt
	size, at int64
	err      error
}

func (u *ubjReader) unsafe(text string, args ...any) { u.fail(registry.CodeUnsafe, text, args...) }

func (u *ubjReader) cut(text string, args ...any) { u.fail(registry.CodeInvalid, text, args...) }

// fail keeps the first error.
func (u *ubjReader) fail(code registry.Code, text string, args ...any) {
	if u.err == nil {
		u.err = registry.Errorf(code, "UBJSON at byte %d: "+text, append([]any{u.at}, args...)...)
	}
}

// take returns the next n bytes, at most 8; zeros after an error.
func (u *ubjReader) take(n int) []byte {
	var buf [8]byte
	if u.err == nil && int64(n) > u.size-u.at {
		u.cut("the file ends here: copy or save it again")
	}
	if u.err == nil {
		if _, err := u.r.ReadAt(buf[:n], u.at); err != nil && !errors.Is(err, io.EOF) {
			u.err = err
		}
		u.at += int64(n)
	}
	return buf[:n]
}

func (u *ubjReader) byte() byte { return u.take(1)[0] }

// count reads a length with its marker: how many bytes or items follow, which the file must have.
func (u *ubjReader) count(marker byte, each int64) int64 {
	width := ubjWidth[marker]
	if !bytes.ContainsRune([]byte("iUIlL"), rune(marker)) {
		u.unsafe("a length of type %q", marker)
		return 0
	}
	raw := u.take(width)
	var n uint64
	for _, b := range raw {
		n = n<<8 | uint64(b)
	}
	if u.err == nil && (n > uint64(u.size) || int64(n)*each > u.size-u.at) {
		u.unsafe("%d items follow, in a file of %d bytes", n, u.size)
	}
	if u.err != nil {
		return 0
	}
	return int64(n)
}

// value reads what follows a marker.
func (u *ubjReader) value(marker byte, depth int) {
	width, fixed := ubjWidth[marker]
	switch {
	case u.err != nil:
	case fixed:
		u.take(width)
	case marker == 'S' || marker == 'H':
		u.at += u.count(u.byte(), 1)
	case marker != '{' && marker != '[':
		u.unsafe("a value of type %q", marker)
	case depth == maxBoosterDepth:
		u.unsafe("nested more than %d deep, which no model of XGBoost is", maxBoosterDepth)
	default:
		u.container(marker, depth+1)
	}
}

// container reads a list or an object, which may say the type and the number of its items first.
func (u *ubjReader) container(open byte, depth int) {
	var typed byte
	counted, n, next := false, int64(0), u.byte()
	if next == '$' {
		if typed, next = u.byte(), u.byte(); next != '#' {
			u.unsafe("a type of items without their number")
		}
	}
	if next == '#' {
		width, fixed := ubjWidth[typed]
		counted, n = true, u.count(u.byte(), int64(max(width, 1)))
		if fixed && open == '[' {
			u.at += n * int64(width)
			return
		}
	}
	end := map[byte]byte{'[': ']', '{': '}'}[open]
	for i := int64(0); u.err == nil && (!counted || i < n); i++ {
		if counted || i > 0 {
			next = 0
			if !counted || open == '{' || typed == 0 {
				next = u.byte()
			}
		}
		if !counted && next == end {
			return
		}
		u.item(open, next, typed, depth)
	}
}

// item reads one item of a container, whose first byte is next unless all items have one type.
func (u *ubjReader) item(open, next, typed byte, depth int) {
	if open == '{' {
		u.at += u.count(next, 1) // the key
		next = 0
	}
	if typed != 0 {
		next = typed
	} else if next == 0 {
		next = u.byte()
	}
	u.value(next, depth)
}
