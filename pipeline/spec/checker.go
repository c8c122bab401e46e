package spec

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// checker notes in the document what is wrong with the meaning of the spec.
type checker struct {
	*Spec
	doc    *strictyaml.Document
	others []string // toolchains besides those that ship with us
}

// report notes err, if any, at the path.
func (c checker) report(err error, path ...any) {
	if err != nil {
		c.doc.At(path...).Problemf("%s", err)
	}
}

// problem notes what is wrong at the path.
func (c checker) problem(path []any, format string, args ...any) {
	c.doc.At(path...).Problemf(format, args...)
}

func at(path ...any) []any { return path }

// oneOf checks a word. The available ones are allowed; the others are understood,
// and refused for what they are.
func (c checker) oneOf(path []any, what, word string, available, others []string) bool {
	switch {
	case slices.Contains(available, word):
		return true
	case slices.Contains(others, word):
		c.problem(path, "%s %q is not available in this version: want %s", what, word, strings.Join(available, ", "))
	default:
		known := append(slices.Clone(available), others...)
		c.problem(path, "unknown %s %q%s: want %s", what, word,
			registry.Suggest(word, known), strings.Join(available, ", "))
	}
	return false
}

// exists checks that a path leads to a file in the folder of the spec, or to a folder there.
// Opening it later repeats the check.
func (c checker) exists(p Path, folder bool, place ...any) {
	if p.Written == "" {
		return // a missing key is reported where it is required
	}
	c.report(c.Files.Check(p.Written, folder), place...)
}
