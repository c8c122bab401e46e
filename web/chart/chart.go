// Package chart draws charts as SVG for pages that allow neither scripts nor inline styles.
//
// A chart has a title and a description for those who do not see it, and a table with the same numbers
// below. Colours come from the style sheet of the page, by classes.
package chart

import (
	"fmt"
	"html/template"
	"strings"
)

// Bars is a chart with one horizontal bar per row.
type Bars struct {
	Title       string
	Description string
	Unit        string // heading of the numbers in the table
	Rows        []Row
}

// Row is one bar. Values that are negative or not numbers have no length.
type Row struct {
	Label string
	Value float64
	Text  string // the value as it is shown
}

const (
	width      = 640
	rowHeight  = 22
	labelWidth = 150
	textWidth  = 80
)

// HTML returns a figure element. All texts are escaped.
func (b Bars) HTML() template.HTML {
	if len(b.Rows) == 0 {
		return ""
	}
	largest := 0.0
	for _, r := range b.Rows {
		largest = max(largest, length(r.Value))
	}
	var out strings.Builder
	height := rowHeight*len(b.Rows) + 4
	fmt.Fprintf(&out, `<figure class="chart"><figcaption>%s</figcaption>`, escape(b.Title))
	fmt.Fprintf(&out, `<svg role="img" viewBox="0 0 %d %d" width="%d" height="%d"><title>%s</title><desc>%s</desc>`,
		width, height, width, height, escape(b.Title), escape(b.Description))
	for i, r := range b.Rows {
		long := 0.0
		if largest > 0 {
			long = length(r.Value) / largest * (width - labelWidth - textWidth)
		}
		y := i*rowHeight + 2
		fmt.Fprintf(&out, `<text class="label" x="%d" y="%d" text-anchor="end">%s</text>`, labelWidth-8, y+15, escape(r.Label))
		fmt.Fprintf(&out, `<rect class="bar" x="%d" y="%d" width="%.1f" height="%d"/>`, labelWidth, y+3, long, rowHeight-6)
		fmt.Fprintf(&out, `<text class="value" x="%.1f" y="%d">%s</text>`, labelWidth+long+6, y+15, escape(r.Text))
	}
	out.WriteString(`</svg>`)
	fmt.Fprintf(&out, `<details><summary>Numbers</summary><p>%s</p><table><thead><tr><th scope="col">what</th><th scope="col">%s</th></tr></thead><tbody>`,
		escape(b.Description), escape(b.Unit))
	for _, r := range b.Rows {
		fmt.Fprintf(&out, `<tr><th scope="row">%s</th><td>%s</td></tr>`, escape(r.Label), escape(r.Text))
	}
	out.WriteString(`</tbody></table></details></figure>`)
	return template.HTML(out.String()) //nolint:gosec // every text in it was escaped
}

// length is a value that can be drawn: 0 for what is negative or no number.
func length(v float64) float64 {
	if v > 0 && v < 1e300 {
		return v
	}
	return 0
}

func escape(text string) string { return template.HTMLEscapeString(text) }
