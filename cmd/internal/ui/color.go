package ui

// A word begins a line for people, behind the name of the program. On a terminal it is painted,
// and nothing else is: texts from elsewhere are escaped wherever they stand.
type word string

const (
	wordError   word = "error:"
	wordHint    word = "hint:"
	wordWarning word = "warning:"
)

// color is the sequence with which a terminal begins to paint a word: red, cyan or yellow, in bold.
func (w word) color() string {
	switch w {
	case wordError:
		return "\x1b[1;31m"
	case wordHint:
		return "\x1b[1;36m"
	case wordWarning:
		return "\x1b[1;33m"
	}
	return ""
}

// uncolored ends what color begins.
const uncolored = "\x1b[0m"

// wantsColors reports whether words on stdout or stderr may be painted: it is a terminal that has colors, and
// NO_COLOR does not forbid them. An empty NO_COLOR counts as unset: see https://no-color.org.
func wantsColors(terminal bool, getenv func(string) string) bool {
	return terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}
