package releases

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/web/page"
)

// EngineTable lists engines, in the order that the reader chose by a link at the head of a column.
type EngineTable struct {
	Columns []column
	Rows    []EngineRow
}

// column is the head of a column.
type column struct {
	Text    string
	URL     string // sorts by it, or the other way round; empty: it cannot be sorted
	Numeric bool
	Sorted  string // "ascending" or "descending", as aria-sort has it; empty: it is not
}

// sortKey is what rows are compared by. Rows without one come last.
type sortKey struct {
	known  bool
	number float64
	text   string
}

// engineColumn is a column of the table of engines. name is its value of "sort"; with a "-" before it, descending.
type engineColumn struct {
	name, text string
	numeric    bool
	key        func(e EngineRow) sortKey // nil: it cannot be sorted
}

func engineColumns() []engineColumn {
	words := func(of func(EngineRow) string) func(EngineRow) sortKey {
		return func(e EngineRow) sortKey { return sortKey{known: true, text: of(e)} }
	}
	count := func(of func(EngineRow) int64) func(EngineRow) sortKey {
		return func(e EngineRow) sortKey { return sortKey{known: of(e) > 0, number: float64(of(e))} }
	}
	return []engineColumn{
		{"engine", "Engine", false, words(func(e EngineRow) string { return e.Label })},
		{"verdict", "Verdict", false, words(func(e EngineRow) string { return e.Verdict.Word })},
		{"margin", "Smallest margin", false, func(e EngineRow) sortKey { return sortKey{known: e.Closest.counted, number: 1 - e.Closest.share} }},
		{"", "Accuracy", false, nil},
		{"p50", "p50", true, count(func(e EngineRow) int64 { return e.p50 })},
		{"p99", "p99", true, count(func(e EngineRow) int64 { return e.p99 })},
		{"size", "Size", true, count(func(e EngineRow) int64 { return e.bytes })},
		{"toolchain", "Toolchain", false, words(func(e EngineRow) string { return e.Toolchain })},
	}
}

// EnginesBy is the table of engines in the order that a query asks for, else in the order of the release. Links keep the
// query's environment.
func EnginesBy(query url.Values, rows []EngineRow) EngineTable {
	asked, descending := strings.CutPrefix(query.Get("sort"), "-") // without "-", asked is the value itself
	table := EngineTable{Rows: slices.Clone(rows)}
	for _, c := range engineColumns() {
		shown := column{Text: c.text, Numeric: c.numeric}
		if c.key != nil {
			next := c.name
			if c.name == asked {
				slices.SortStableFunc(table.Rows, func(a, b EngineRow) int { return compareKeys(c.key(a), c.key(b), descending) })
				if shown.Sorted = "descending"; !descending {
					shown.Sorted, next = "ascending", "-"+c.name
				}
			}
			shown.URL = page.WithQuery("", "environment", query.Get("environment"), "sort", next)
		}
		table.Columns = append(table.Columns, shown)
	}
	return table
}

func compareKeys(a, b sortKey, descending bool) int {
	switch {
	case a.known && !b.known:
		return -1
	case !a.known && b.known:
		return 1
	}
	order := cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.text, b.text))
	if descending {
		return -order
	}
	return order
}
