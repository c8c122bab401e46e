package tensorfile

import (
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// pyParser parses the few Python literals of an npy header. After the first error every method
// returns a zero value.
type pyParser struct {
	rest string
	err  error
}

func (p *pyParser) abort(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *pyParser) fail(expected string) {
	p.abort(tensor.Errorf(tensor.ErrMalformed, "npy: header has %.32q: expected %s", p.rest, expected))
}

func (p *pyParser) peek(prefix string) bool {
	p.rest = strings.TrimLeft(p.rest, " ")
	return p.err == nil && strings.HasPrefix(p.rest, prefix)
}

func (p *pyParser) accept(prefix string) bool {
	if !p.peek(prefix) {
		return false
	}
	p.rest = p.rest[len(prefix):]
	return true
}

func (p *pyParser) expect(prefix string) {
	if !p.accept(prefix) {
		p.fail(strconv.Quote(prefix))
	}
}

// string reads a quoted string without escapes.
func (p *pyParser) string() string {
	for _, quote := range []string{"'", `"`} {
		if !p.accept(quote) {
			continue
		}
		body, rest, ok := strings.Cut(p.rest, quote)
		if !ok || strings.Contains(body, `\`) {
			break
		}
		p.rest = rest
		return body
	}
	p.fail("a string without escapes")
	return ""
}

func (p *pyParser) bool() bool {
	if p.accept("True") {
		return true
	}
	if !p.accept("False") {
		p.fail("True or False")
	}
	return false
}

// tuple reads a tuple of integers: (), (2,), (2, 3).
func (p *pyParser) tuple() []int64 {
	out := []int64{}
	p.expect("(")
	for p.err == nil && !p.accept(")") {
		out = append(out, p.integer())
		// (2) is a number in Python, (2,) a tuple.
		if !p.accept(",") && (len(out) == 1 || !p.peek(")")) {
			p.fail("a tuple of integers")
		}
	}
	return out
}

func (p *pyParser) integer() int64 {
	p.peek("")
	digits := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789"))
	n, err := strconv.ParseUint(p.rest[:digits], 10, 63)
	if err != nil {
		p.fail("an integer from 0 to 2^63-1")
		return 0
	}
	p.rest = p.rest[digits:]
	return int64(n)
}
