package ui

import (
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// Width is how many columns paragraphs take in a file or a pipe.
const Width = 80

// columns is how many columns the terminal has or COLUMNS asks for; 0 for neither. [New] sets it, once in a process, because tables are
// made where no UI is.
var columns atomic.Int64

// width returns how many columns paragraphs take.
func width() int {
	if n := int(columns.Load()); n > 0 {
		return n
	}
	return Width
}

// tableWidth returns how many columns tables take. In a file or a pipe each row is one line, for grep and awk.
func tableWidth() int {
	if n := int(columns.Load()); n > 0 {
		return n
	}
	return math.MaxInt
}

// fewestColumns is the smallest number that is followed: below it, words have no room.
const fewestColumns = 40

// columnsOf returns the number of columns that a user asks for, or else a terminal has; 0 for neither.
func columnsOf(getenv func(string) string, terminal int) int {
	asked, err := strconv.Atoi(getenv("COLUMNS"))
	switch {
	case err != nil:
		asked = terminal
	case asked <= 0:
		return Width
	}
	if asked > 0 && asked < fewestColumns {
		return Width
	}
	return asked
}

// between is the space between two columns.
const between = 2

// narrowColumn is the width of a column that gets narrower only if the others cannot: it fits a time.
const narrowColumn = 20

// further begins the further lines of a first cell.
const further = "  "

// Table lines up rows of cells, each of which becomes plain. Where the rows are too wide, cells go on below by words.
func Table(rows [][]string) string { return tableIn(tableWidth(), rows) }

// TableBehind is Table with room for an indent before each line.
func TableBehind(indent string, rows [][]string) string {
	text := strings.TrimRight(tableIn(tableWidth()-len(indent), rows), "\n")
	return indent + strings.ReplaceAll(text, "\n", "\n"+indent) + "\n"
}

func tableIn(width int, rows [][]string) string {
	cells := make([][]string, len(rows))
	for i, row := range rows {
		for _, cell := range row {
			cells[i] = append(cells[i], tableCell(cell))
		}
	}
	split := words
	columns, fits := columnWidths(width, cells, split)
	if !fits {
		split = labelParts
		columns, _ = columnWidths(width, cells, split)
	}
	var b strings.Builder
	for _, row := range cells {
		writeRow(&b, columns, row, split)
	}
	return b.String()
}

// tableCell makes a cell plain. A verdict of ours keeps its mark.
func tableCell(cell string) string {
	if isMarked(cell) {
		return cell
	}
	return Plain(cell)
}

// columnWidths returns the widths of columns: as wide as their cells are, or where this is too wide for all, the widest narrower, but
// none narrower than its longest piece, as split returns them.
func columnWidths(width int, rows [][]string, split func(string) []piece) (widths []int, fits bool) {
	var least []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths, least = append(widths, 0), append(least, 0)
			}
			widths[i] = max(widths[i], cellWidth(cell))
			for n, line := range wrapPieces(cell, split(cell), 1, 1) { // a piece in each
				if n > 0 && i == 0 {
					line = further + line
				}
				least[i] = max(least[i], cellWidth(line))
			}
		}
	}
	total := between * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for _, narrow := range []int{narrowColumn, 0} {
		for ; total > width; total-- {
			widest := -1
			for i, w := range widths {
				if w > max(least[i], narrow) && (widest < 0 || w > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 { // words that are longer stay whole: people copy them
				break
			}
			widths[widest]--
		}
	}
	return widths, total <= width
}

// writeRow writes a row, whose cells go on in further lines where they are wider than their column.
func writeRow(b *strings.Builder, widths []int, row []string, split func(string) []piece) {
	wrapped, height := make([][]string, len(row)), 1
	for i, cell := range row {
		wrapped[i] = []string{cell}
		switch {
		case cellWidth(cell) <= widths[i]:
		case i == 0: // so that no line of a row looks like a row
			wrapped[i] = wrapPieces(cell, split(cell), widths[i], widths[i]-len(further))
			for n := range wrapped[i][1:] {
				wrapped[i][n+1] = further + wrapped[i][n+1]
			}
		default:
			wrapped[i] = wrapPieces(cell, split(cell), widths[i], widths[i])
		}
		height = max(height, len(wrapped[i]))
	}
	for n := range height {
		line, at := "", 0
		for i, cell := range wrapped {
			if n < len(cell) && cell[n] != "" {
				line += strings.Repeat(" ", at-cellWidth(line)) + cell[n]
			}
			at += widths[i] + between
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// cellWidth is how many columns a text takes.
func cellWidth(text string) int { return utf8.RuneCountInString(bare(text)) }

// Paragraph is a text of ours in lines of that width, of which those after the first are indented. It becomes plain.
func Paragraph(text, indent string) string {
	return strings.Join(wrap(Plain(text), width(), width()-len(indent)), "\n"+indent)
}

// Hanging is a head and a text behind it, whose further lines begin below the text. The text becomes plain.
func Hanging(head, text string) string {
	left := width() - cellWidth(head)
	return head + strings.Join(wrap(Plain(text), left, left), "\n"+strings.Repeat(" ", cellWidth(head)))
}

// wrap splits a text into lines by words: the first of at most first columns, the others of at most others. A longer word is a line.
func wrap(text string, first, others int) []string {
	return wrapPieces(text, words(text), first, others)
}

// piece is a part of a text that stays whole.
type piece struct {
	text  string
	glued bool // no space is before it
}

// wrapPieces is wrap for given pieces of the text.
func wrapPieces(text string, pieces []piece, first, others int) (lines []string) {
	begin := len(text) - len(strings.TrimLeft(text, " ")) // what a line begins with stays
	line, width := text[:begin], first
	for i, p := range pieces {
		space := " "
		if p.glued || i == 0 {
			space = ""
		}
		if i == 0 || cellWidth(line)+len(space)+cellWidth(p.text) <= width {
			line += space + p.text
			continue
		}
		lines, line, width = append(lines, line), p.text, others
	}
	return append(lines, line)
}

// words splits a text at spaces.
func words(text string) (all []piece) {
	for word := range strings.FieldsSeq(text) {
		all = append(all, piece{text: word})
	}
	return all
}

// labelParts is words, but splits labels of engines into two. Paths and addresses stay whole: people copy them.
func labelParts(text string) (all []piece) {
	for _, word := range words(text) {
		target, variant, label := strings.Cut(word.text, "/")
		if label && target != "" && variant != "" && !strings.Contains(variant, "/") {
			all = append(all, piece{text: target + "/"}, piece{variant, true})
			continue
		}
		all = append(all, word)
	}
	return all
}
