package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// Page returns the page of the messages in the source below root.
func Page(root string) ([]byte, error) {
	subjects, err := collect(root)
	if err != nil {
		return nil, err
	}
	explained, err := explanations(filepath.Join(root, "docs", "troubleshooting.md"))
	if err != nil {
		return nil, err
	}
	count := 0
	for _, s := range subjects {
		count += len(s.Messages)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, head, count)
	for _, s := range subjects {
		fmt.Fprintf(&b, "\n## %s\n\n", s.Path)
		if s.Synopsis != "" {
			fmt.Fprintf(&b, "%s\n\n", code(s.Synopsis))
		}
		for _, m := range s.Messages {
			b.WriteString(m.line(explained) + "\n")
		}
	}
	return b.Bytes(), nil
}

const head = `# Messages by their words

<!-- make generate -->

Search this page for words of a message that do not change; ` + "`…`" + ` stands for the parts that do. %d messages are here, by the package
that has them, with the exit code in brackets and the hint. A warning ends nothing. Messages without a number have the code of their cause. A hint
alone can follow several messages. [exit-codes.md](exit-codes.md) tells scripts how to react, [troubleshooting.md](../troubleshooting.md) explains
the frequent ones, and [failures.md](../how-to/failures.md) the codes of reports. The page is generated from the source, and a test checks that.
`

// line is the entry of a message.
func (m Message) line(explained []explanation) string {
	var b strings.Builder
	b.WriteString("-")
	if m.Text != "" {
		b.WriteString(" " + code(m.Text))
	}
	if m.Exit != "" && m.Text != "" {
		b.WriteString(" (" + m.Exit + ")")
	}
	if m.Hint != "" {
		b.WriteString(" hint: " + code(m.Hint))
	}
	for _, e := range explained {
		if e.is(m.Text) {
			fmt.Fprintf(&b, " [more](../troubleshooting.md#%s)", e.anchor)
			break
		}
	}
	return b.String()
}

// code is a code span, also of a text with backticks.
func code(s string) string {
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

// explanation is a message that troubleshooting.md explains.
type explanation struct {
	parts  []string // the fixed parts, in order
	anchor string
}

var (
	explainedHeading = regexp.MustCompile("(?m)^### (`(.+?)`.*)$")
	quotes           = regexp.MustCompile(`"`)
)

func explanations(path string) ([]explanation, error) {
	page, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []explanation
	for _, m := range explainedHeading.FindAllStringSubmatch(string(page), -1) {
		all = append(all, explanation{strings.Split(m[2], "…"), anchor(m[1])})
	}
	return all, nil
}

// is reports whether a message has the fixed parts in their order.
func (e explanation) is(message string) bool {
	for _, part := range e.parts {
		_, rest, ok := strings.Cut(message, strings.TrimSpace(quotes.ReplaceAllString(part, "")))
		if message = rest; !ok {
			return false
		}
	}
	return true
}

// anchor is how GitHub links a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
