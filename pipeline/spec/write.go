package spec

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// ReplaceVariants writes v in place of the variants of data, the text of the spec that
// messages call name, and leaves everything else as it is: order, comments and blank
// lines. Where the list has v already, on lines of its own, these lines stay, with the
// comments on and above them; what the others say goes with them. Errors: CodeInvalid for
// a text that is no spec, or whose keys do not stand on lines of their own.
func ReplaceVariants(name string, data []byte, v Variant) ([]byte, error) {
	var s Spec
	doc, err := strictyaml.Decode(name, data, &s)
	if err != nil {
		return nil, err
	}
	entries := doc.Root().Entries()
	i := slices.IndexFunc(entries, func(e strictyaml.Entry) bool { return e.Key == "variants" })
	first, column := entries[i].Name.Position()
	lines := strings.SplitAfter(string(data), "\n")
	last := len(lines)
	if i+1 < len(entries) {
		last, _ = entries[i+1].Name.Position()
		last--
	}
	line := "variants: [" + v.Flow() + "]"
	if column != 1 || last < first {
		return nil, registry.Errorf(registry.CodeInvalid,
			"%s: variants does not stand on lines of its own: write %s by hand", name, line)
	}
	last = trim(lines, first, last)
	text := line + comment(lines[first-1]) + "\n"
	if kept, ok := keep(lines[:last], first, entries[i].Value, s.index(v)); ok {
		text = kept
	}
	return []byte(strings.Join(lines[:first-1], "") + text + strings.Join(lines[last:], "")), nil
}

// index finds a variant in the spec; -1 for one that it does not have.
func (s Spec) index(v Variant) int {
	return slices.IndexFunc(s.Variants, func(have Variant) bool {
		have.complete()
		return have.Written().Flow() == v.Flow()
	})
}

// keep gives a list, whose key is in line first of lines, with one of its items alone,
// where every item has lines of its own.
func keep(lines []string, first int, list *strictyaml.Node, index int) (string, bool) {
	if index < 0 {
		return "", false
	}
	starts := []int{first} // the line of the key, then of every item
	for _, item := range list.Items() {
		at, _ := item.Position()
		if at <= starts[len(starts)-1] {
			return "", false
		}
		starts = append(starts, at)
	}
	end := len(lines)
	line, column := list.Position()
	if strings.HasPrefix(lines[line-1][column-1:], "[") { // the brackets stay, too
		if end--; line != first || !strings.HasPrefix(strings.TrimSpace(lines[end]), "]") {
			return "", false
		}
	}
	head, tail := strings.Join(lines[first-1:first], ""), strings.Join(lines[end:], "")
	ends := append(starts[2:], end+1)
	begin := first
	for i := range index {
		begin = trim(lines, starts[i+1], ends[i]-1)
	}
	return head + strings.Join(lines[begin:trim(lines, starts[index+1], ends[index]-1)], "") + tail, true
}

// trim gives the last of the lines first to last that does not belong to what follows.
func trim(lines []string, first, last int) int {
	for last > first && beside(lines[last-1]) {
		last--
	}
	return last
}

// beside reports whether a line after a value belongs to what follows it.
func beside(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || strings.HasPrefix(line, "#")
}

// comment is what stands behind the value of a line, with the blanks before it.
func comment(line string) string {
	line = strings.TrimRight(line, "\r\n")
	quote := rune(0)
	for i, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '#' && i > 0 && strings.ContainsRune(" \t", rune(line[i-1])):
			return line[len(strings.TrimRight(line[:i], " \t")):]
		}
	}
	return ""
}
