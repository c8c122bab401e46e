package cireport

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// MaxMarkdown is how many bytes the Markdown has at most: comments of GitHub may have 65,536 characters.
const MaxMarkdown = 60_000

// marker begins a comment, so that the next run finds and replaces it instead of adding another one.
func marker(r Report) string {
	return "<!-- mlpromote " + r.Model + " " + r.Destination + " -->\n"
}

// Markdown is the report as a comment on a change, or as the summary of a job. It begins with what decides, and lists
// what is loosened before anything else that changed.
func Markdown(r Report) string {
	return page(marker(r)+heading(r)+now(r), requirementsTable(r), enginesTable(r), changes(r), nodesTable(r), buildsTable(r), costs(r))
}

// Decision is the decision about a promotion in the same form, without what needs the registry. refusal is why it was
// refused, which is said where no requirement says it; empty if it was not.
func Decision(p api.Promotion, refusal string) string {
	name := registry.Ref{Environment: p.From, Model: p.Model, Tag: p.Version}
	r := Report{
		Model: p.Model, Version: p.Version, Destination: p.Environment, Unchanged: p.Unchanged && refusal == "",
		Allowed: refusal == "" && p.Decision.Allowed(), Requirements: withRemedies(p, name.String()),
	}
	name.Digest = p.Release
	said := ""
	if refusal != "" && len(r.Unmet()) == 0 {
		said = md(refusal) + "\n"
	}
	for _, n := range p.NodesGet {
		r.Nodes = append(r.Nodes, api.NodeChange{Node: "node type " + n.NodeType, To: n.Label})
	}
	return page(heading(r)+md(name.String())+"\n", said, requirementsTable(r), nodesTable(r))
}

// page puts parts behind text, as far as there is room.
func page(text string, parts ...string) string {
	for _, part := range parts {
		if part == "" {
			continue
		}
		if len(text)+len(part) > MaxMarkdown {
			text += "\nThe rest is too long for a comment: `mlpromote ci report --format json` has all of it.\n"
			break
		}
		text += "\n" + part
	}
	return text
}

func heading(r Report) string {
	verdict := "**may not be promoted to " + md(r.Destination) + "**: " + registry.Count(len(r.Unmet()), "requirement") + " unmet"
	switch {
	case r.Unchanged:
		verdict = "is in " + md(r.Destination) + " already"
	case !r.Allowed && len(r.Unmet()) == 0: // a hold is no requirement
		verdict = "**may not be promoted to " + md(r.Destination) + "**"
	case r.Allowed:
		verdict = "**may be promoted to " + md(r.Destination) + "**"
	}
	return fmt.Sprintf("### %s %s %s\n\n", md(r.Model), md(r.Version), verdict)
}

// now says which release the destination has, and which one the report is about.
func now(r Report) string {
	text := "It has no release yet."
	if r.Current != "" {
		text = "It has " + md(r.Current) + " now."
	}
	return text + " " + link("`"+code(r.Release)+"`", r.Page) + builtIn(r) + "\n"
}

// builtIn says which CI run built the release.
func builtIn(r Report) string {
	switch {
	case r.Run == "":
		return ""
	case r.RunClaimed:
		return ", built in " + link("a CI run", r.Run) + ", as the job claims"
	}
	return ", built in " + link("this CI run", r.Run)
}

// requirementsTable lists what is unmet or refused, each with the command that meets it, and counts the rest.
func requirementsTable(r Report) string {
	unmet := r.Unmet()
	met := len(r.Requirements) - len(unmet)
	if len(unmet) == 0 {
		return fmt.Sprintf("All %s met.\n", registry.Count(met, "requirement is", "requirements are"))
	}
	rows := [][]string{{"Requirement", "State", "Of", "Why", "What to do"}}
	for len(unmet) > 0 {
		req, alike := unmet[0], subjects(unmet[0].alike(unmet))
		do := ""
		if req.Command != "" {
			do = "`" + code(req.Command) + "`"
		}
		state := req.State()
		if req.Objects() {
			state = "**" + state + "**"
		}
		rows = append(rows, []string{md(req.Name), state, alike, md(req.Detail), do})
		unmet = slices.DeleteFunc(unmet, func(other Requirement) bool { return other.like(req) })
	}
	return table(rows) + "\n" + registry.Count(met, "other requirement is", "other requirements are") + " met.\n"
}

// like reports whether two requirements are unmet for one reason.
func (req Requirement) like(other Requirement) bool {
	return req.Name == other.Name && req.State() == other.State() && req.Detail == other.Detail && req.Command == other.Command
}

// alike are the subjects for which the requirement is unmet for one reason.
func (req Requirement) alike(all []Requirement) []Requirement {
	var same []Requirement
	for _, other := range all {
		if other.like(req) {
			same = append(same, other)
		}
	}
	return same
}

// subjects names at most three, with their pages.
func subjects(all []Requirement) string {
	const most = 3
	var names []string
	for _, req := range all[:min(most, len(all))] {
		names = append(names, link(md(req.Subject), req.Page))
	}
	if more := len(all) - most; more > 0 {
		names = append(names, registry.Count(more, "more", "more"))
	}
	return strings.Join(names, ", ")
}

// enginesTable has a row for each engine, those that did not pass first.
func enginesTable(r Report) string {
	engines := slices.Clone(r.Engines)
	slices.SortStableFunc(engines, func(a, b Engine) int { return rank(a) - rank(b) })
	than := "Beside " + md(r.Destination)
	rows := [][]string{{"Engine", "Verdict", "Tightest limit", "Accuracy", than, "p50", "p99", than, "Size", than}}
	if r.Current == "" {
		rows[0] = []string{"Engine", "Verdict", "Tightest limit", "Accuracy", "p50", "p99", "Size"}
	}
	for _, e := range engines {
		row := []string{link(md(e.Label), e.Page), verdict(e), limit(e), accuracy(e)}
		p50, p99 := latency(e)
		if r.Current == "" {
			rows = append(rows, append(row, p50, p99, ui.Size(e.Bytes)))
			continue
		}
		rows = append(rows, append(row, against(e), p50, p99, slower(e), ui.Size(e.Bytes), growth(e)))
	}
	text := table(rows)
	for _, e := range engines {
		for _, reason := range e.Reasons {
			text += "\n- " + md(e.Label) + ": " + md(reason)
		}
	}
	return strings.TrimRight(text, "\n") + "\n"
}

func rank(e Engine) int {
	switch {
	case e.Verdict == "":
		return 1
	case !e.Passed():
		return 0
	}
	return 2
}

func verdict(e Engine) string {
	switch {
	case e.Verdict == "":
		return "not verified"
	case e.Passed():
		return "pass"
	case e.Verdict != evidence.VerdictPass:
		return "**" + md(string(e.Verdict)) + "**"
	}
	return "**latency: " + md(string(e.LatencyVerdict)) + "**"
}

func limit(e Engine) string {
	if e.Tightest == nil {
		return "-"
	}
	sign := "≤"
	if e.Tightest.AtLeast {
		sign = "≥"
	}
	text := fmt.Sprintf("%s %.4g %s %.4g", md(checkName(*e.Tightest)), float64(e.Tightest.Value), sign, float64(e.Tightest.LimitValue()))
	if e.Margin != nil && *e.Margin >= 0 {
		text += fmt.Sprintf(", %.0f %% left", 100*float64(*e.Margin))
	}
	return text
}

func accuracy(e Engine) string {
	if e.Accuracy == nil {
		return "-"
	}
	text := md(e.Accuracy.Metric) + " " + validators.AccuracyText(*e.Accuracy, e.Accuracy.Engine)
	for _, c := range e.Checks {
		if c.Figure == "accuracy" && c.Slice == "" && c.Low != nil && c.High != nil {
			return text + " (" + validators.AccuracyText(*e.Accuracy, *c.Low) + " to " + validators.AccuracyText(*e.Accuracy, *c.High) + ")"
		}
	}
	return text
}

// against is the accuracy of the engine there now on the same cases, if verify ran both.
func against(e Engine) string {
	if e.Against == nil {
		return "-"
	}
	return validators.AccuracyText(e.Against.Accuracy, e.Against.Accuracy.Reference)
}

func latency(e Engine) (p50, p99 string) {
	if e.Latency == nil {
		return "-", "-"
	}
	return time.Duration(e.Latency.P50Ns).Round(time.Microsecond).String(), time.Duration(e.Latency.P99Ns).Round(time.Microsecond).String()
}

// slower is the ratio of medians with its interval, if verify measured both together.
func slower(e Engine) string {
	if e.Slower == nil {
		return "-"
	}
	return fmt.Sprintf("x %.3g (%.3g to %.3g)", float64(e.Slower.Ratio), float64(e.Slower.Low), float64(e.Slower.High))
}

func growth(e Engine) string {
	switch {
	case e.Was == "":
		return "new"
	case e.WasBytes == 0:
		return "-"
	}
	return fmt.Sprintf("%+.1f %%", 100*(float64(e.Bytes)/float64(e.WasBytes)-1))
}

// changes lists what callers and approvers look at: loosened limits first.
func changes(r Report) string {
	text := ""
	for _, list := range []struct {
		title string
		lines []string
	}{
		{"Limits that are looser than in " + r.Current, r.Looser},
		{"Changes that callers notice", r.Interface},
		{"Engines that " + r.Current + " has and this release has not", r.Gone},
		{"Engines of the spec that were not built", leftOut(r)},
		{"Not known", r.Unknown},
	} {
		if len(list.lines) == 0 {
			continue
		}
		text += "**" + md(list.title) + "**\n\n"
		for _, line := range list.lines {
			text += "- " + md(line) + "\n"
		}
		text += "\n"
	}
	return strings.TrimSuffix(text, "\n")
}

func leftOut(r Report) []string {
	var lines []string
	for _, e := range r.LeftOut {
		lines = append(lines, e.Label+" ("+string(e.Code)+")")
	}
	return lines
}

// maxNodes is how many node types the table has.
const maxNodes = 50

// nodesTable says which engine node types get, and the one that they have if the destination has a release.
func nodesTable(r Report) string {
	if len(r.Nodes) == 0 {
		return ""
	}
	rows := [][]string{{"Nodes", "get"}}
	if r.Current != "" {
		rows[0] = []string{"Nodes", "get", "have now"}
	}
	for _, n := range r.Nodes[:min(maxNodes, len(r.Nodes))] {
		row := []string{md(n.Node), of(n.To, r.Version)}
		if r.Current != "" {
			row = append(row, of(n.From, r.Current))
		}
		rows = append(rows, row)
	}
	text := table(rows)
	if more := len(r.Nodes) - maxNodes; more > 0 {
		text += "\nAnd " + registry.Count(more, "other node type") + ": the JSON form has all.\n"
	}
	return text
}

// of is an engine of a version. Both versions have one with this label, and the bytes differ.
func of(label, version string) string {
	if label == "" {
		return "none"
	}
	return md(label + " of " + version)
}

func costs(r Report) string {
	if r.Steps == nil {
		return ""
	}
	cost := ""
	if r.Steps.Cost != nil {
		cost = fmt.Sprintf(", which cost %.2f", *r.Steps.Cost)
	}
	if r.Steps.Cached == r.Steps.Count {
		return fmt.Sprintf("Build: %s, all from a cache%s.\n", registry.Count(r.Steps.Count, "step"), cost)
	}
	return fmt.Sprintf("Build: %s, %d of them from a cache; the others took %s%s.\n",
		registry.Count(r.Steps.Count, "step"), r.Steps.Cached, took(r.Steps.Elapsed), cost)
}

// took is how long steps took. A time that was measured is never shown as none.
func took(elapsed time.Duration) string {
	const shortest = 100 * time.Millisecond
	if elapsed < shortest {
		return "less than " + shortest.String()
	}
	return elapsed.Round(shortest).String()
}

// table is a table in GitHub's Markdown. The cells are Markdown already.
func table(rows [][]string) string {
	var text strings.Builder
	for n, row := range rows {
		text.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if n == 0 {
			text.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return text.String()
}

// mdEscapes are characters that begin something in Markdown or HTML: names come from whoever wrote the model, and must
// not make links, mentions or markup of their own.
var mdEscapes = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "&#124;", "`", "&#96;", "*", "&#42;", "_", "&#95;",
	"[", "&#91;", "]", "&#93;", "#", "&#35;", "@", "&#64;",
	"!", "&#33;", `\`, "&#92;", "~", "&#126;", "://", "&#58;//", "www.", "www&#46;", "$", "&#36;",
)

// md is text that Markdown shows as it is, in one line.
func md(s string) string { return mdEscapes.Replace(plain(s)) }

// link is text that leads to a page; the text alone if there is none, or its address could end the link.
func link(text, page string) string {
	if page == "" || page != plain(page) || strings.ContainsAny(page, "()<>|`\\\" ") {
		return text
	}
	return "[" + text + "](" + page + ")"
}

// code is text between backticks.
func code(s string) string { return strings.NewReplacer("`", "'", "|", "/").Replace(plain(s)) }
