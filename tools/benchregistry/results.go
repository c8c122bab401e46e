package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// results is what was measured: rows, and in each the values of every column, one value
// per round.
type results struct {
	title   string
	columns []string // of servers
	rows    []row
}

// row is one measurement. Limits are columns that are not those of a registry: they
// show what the work costs without one.
type row struct {
	what   string
	unit   string
	values map[string][]float64
}

func (r *results) add(what, unit, column string, value float64) {
	i := slices.IndexFunc(r.rows, func(x row) bool { return x.what == what })
	if i < 0 {
		i = len(r.rows)
		r.rows = append(r.rows, row{what: what, unit: unit, values: make(map[string][]float64)})
	}
	r.rows[i].values[column] = append(r.rows[i].values[column], value)
}

// of is the values of a column, one per round; none where it was not measured.
func (r *results) of(what, column string) []float64 {
	for _, row := range r.rows {
		if row.what == what {
			return row.values[column]
		}
	}
	return nil
}

// ratio is that of two columns, taken within each round.
func (r *results) ratio(what, above, below string) []float64 {
	a, b := r.of(what, above), r.of(what, below)
	ratios := make([]float64, 0, len(a))
	for i := range min(len(a), len(b)) {
		ratios = append(ratios, a[i]/b[i])
	}
	return ratios
}

// goal is what a ratio, or a figure, of ours should be.
type goal struct {
	text  string
	got   []float64
	least bool // want at least the limit, not at most
	want  float64
}

// met compares the median.
func (g goal) met() bool {
	m := median(g.got)
	if g.least {
		return m >= g.want
	}
	return m <= g.want
}

// goals are those of which something was measured.
func (r *results) goals() []goal {
	all := []goal{
		{"push: time of distribution, disk, at most 1", r.ratio(rowPushDisk, ours, cncf), false, 1},
		{"push: time of distribution, tmpfs, at most 1", r.ratio(rowPushMemory, ours, cncf), false, 1},
		{"push: time of a bare sha256, tmpfs, under 1.8", r.ratio(rowPushMemory, ours, hashing), false, 1.8},
		{"pull: rate of nginx, at least 0.95", r.ratio(rowPull, static, ours), true, 0.95},
		{"pull with TLS: rate of nginx with TLS, at least 0.9", r.ratio(rowPull, staticBy, secured), true, 0.9},
		{"small artifacts: rate of distribution, disk, at least 2", r.ratio(rowSmallDisk, cncf, ours), true, 2},
		{"small artifacts: rate of docker-registry, disk, at least 3", r.ratio(rowSmallDisk, debian, ours), true, 3},
		{"small artifacts: rate of distribution, tmpfs, at least 2", r.ratio(rowSmallMemory, cncf, ours), true, 2},
		{"small artifacts: rate of docker-registry, tmpfs, at least 3", r.ratio(rowSmallMemory, debian, ours), true, 3},
		{"manifest GET: rate of distribution, at least 2", r.ratio(rowManifest, ours, cncf), true, 2},
		{"manifest GET: rate of nginx, at least 0.3", r.ratio(rowManifest, ours, static), true, 0.3},
		{"resolve: rate of an empty handler, at least 0.5", r.ratio(rowResolve, ours, nothing), true, 0.5},
		{"resolve, 1 connection: rate of an empty handler, at least 0.5", r.ratio(rowResolveOne, ours, nothing), true, 0.5},
		{"memory that a push adds, MiB, under 64", r.of(rowMemory, ours), false, 64},
		{"attached at once and listed, of " + strconv.Itoa(attaches), r.of(rowAttach, ours), true, attaches},
	}
	return slices.DeleteFunc(all, func(g goal) bool { return len(g.got) == 0 })
}

// markdown writes both tables.
func (r *results) markdown(w io.Writer) {
	fmt.Fprintf(w, "%s, on %d cores\n\n", r.title, runtime.NumCPU())
	fmt.Fprintf(w, "| | %s | limit |\n|---%s|---|\n", strings.Join(r.columns, " | "), strings.Repeat("|---", len(r.columns)))
	for _, row := range r.rows {
		fmt.Fprintf(w, "| %s, %s |", row.what, row.unit)
		for _, column := range r.columns {
			fmt.Fprintf(w, " %s |", summary(row.values[column]))
		}
		var limits []string
		for _, name := range []string{hashing, writing, static, staticBy, nothing} {
			if values := row.values[name]; len(values) > 0 {
				limits = append(limits, name+" "+summary(values))
			}
		}
		fmt.Fprintf(w, " %s |\n", strings.Join(limits, "; "))
	}
	goals := r.goals()
	if len(goals) > 0 {
		fmt.Fprint(w, "\n| goal | measured | |\n|---|---|---|\n")
	}
	for _, g := range goals {
		verdict := "not met"
		if g.met() {
			verdict = "met"
		}
		fmt.Fprintf(w, "| %s | %s | %s |\n", g.text, summary(g.got), verdict)
	}
}

// summary is the median and, of several values, the least and the greatest.
func summary(values []float64) string {
	switch len(values) {
	case 0:
		return ""
	case 1:
		return figure(values[0])
	}
	return fmt.Sprintf("%s [%s-%s]", figure(median(values)), figure(slices.Min(values)), figure(slices.Max(values)))
}

// median is the middle value, or the mean of the two in the middle.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// figure has three digits that count, or all of a large number before its point.
func figure(x float64) string {
	switch {
	case x == float64(int64(x)) || x >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case x >= 1:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'f', 3, 64)
}
