package spec

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// ReplaceVariants writes other variants into data, the text of the spec that messages call
// name, and leaves everything else as it is: order, comments and blank lines. Comments
// inside the old list go with it. Errors: CodeInvalid for a text that is no spec, or whose
// keys do not stand on lines of their own.
func ReplaceVariants(name string, data []byte, variants []Variant) ([]byte, error) {
	doc, err := strictyaml.Decode(name, data, &Spec{})
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
	if column != 1 || last < first {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: variants does not stand on lines of its own: write %s by hand", name, variantsLine(variants))
	}
	for last > first && beside(lines[last-1]) {
		last--
	}
	text := variantsLine(variants) + comment(lines[first-1]) + "\n"
	return []byte(strings.Join(lines[:first-1], "") + text + strings.Join(lines[last:], "")), nil
}

func variantsLine(variants []Variant) string {
	texts := make([]string, len(variants))
	for i, v := range variants {
		texts[i] = v.Flow()
	}
	return "variants: [" + strings.Join(texts, ", ") + "]"
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
