package registry

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SortedKeys returns the keys of a map in byte order. It is empty, not nil, for a map without keys.
func SortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// MaxText is the maximum size in bytes of texts from callers that others read, such as the
// reason for a rollback or the message of a report.
const MaxText = 1 << 10

// ValidateText checks such a text: one line of at most [MaxText] bytes of visible characters in
// UTF-8. It refuses control characters, newlines, direction marks and characters without a
// width, which could show another text to a reader. The empty text is valid. what names the
// text in the error. Errors: CodeInvalid.
func ValidateText(what, text string) error {
	if len(text) > MaxText {
		return Errorf(CodeInvalid, "%s has %d bytes: want at most %d; put details elsewhere and link to them", what,
			len(text), MaxText)
	}
	if !utf8.ValidString(text) {
		return Errorf(CodeInvalid, "%s is not UTF-8", what)
	}
	position := 0
	for _, r := range text {
		position++
		if !Visible(r) {
			return Errorf(CodeInvalid, "%s: character %d is %U, which is not visible: want one line of visible text",
				what, position, r)
		}
	}
	return nil
}

// Count returns a number with what it counts: "1 engine", "4 engines". many is the plural of one
// if that does not just end with an s, such as "entries".
func Count[N int | int64](n N, one string, many ...string) string {
	switch {
	case n == 1:
	case len(many) > 0:
		one = many[0]
	default:
		one += "s"
	}
	return fmt.Sprintf("%d %s", n, one)
}

// PlainText makes a text valid for [ValidateText]. It escapes invisible characters, as in "\n",
// and shortens a long text with "…". It does not change a valid text.
func PlainText(text string) string {
	if ValidateText("", text) == nil {
		return text
	}
	const more = "…"
	var plain strings.Builder
	for rest := text; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		written := escape(rest[:size], r)
		left := MaxText - plain.Len() - len(written)
		rest = rest[size:]
		if left < 0 || left < len(more) && rest != "" {
			return plain.String() + more
		}
		plain.WriteString(written)
	}
	return plain.String()
}

// Visible reports whether a character is visible or a space.
func Visible(r rune) bool {
	switch {
	case ' ' <= r && r <= '~' || r == emojiStyle: // ASCII first, since nearly all text is
		return true
	case !unicode.IsGraphic(r):
		return false
	}
	return !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// emojiStyle selects the coloured form of an emoji. It has no width, but people type it with
// emoji.
const emojiStyle = '\uFE0F'

// escape makes a character visible. raw is its encoding in the text.
func escape(raw string, r rune) string {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		return fmt.Sprintf(`\x%02x`, raw[0])
	case Visible(r):
		return raw
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}
