//go:build cgo

package validation_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators"
)

// trainedHead is the first paragraph of the page: when, with what and on which seeds.
func trainedHead(t *testing.T, all []engineRecord, seeds string, of []int, part string) string {
	t.Helper()
	runtimes := make(map[string]bool)
	for _, r := range all {
		runtimes[r.Runtime] = true
	}
	versions, machine := measuredOn(t, runtimes)
	text := fmt.Sprintf("`make validation` wrote this page on %s from the %s seeds (%s), with limits of version %d and the program of commit %s,\n%s, on %s.\n",
		time.Now().UTC().Format(time.DateOnly), seeds, part, validators.LimitsVersion, programID(t),
		versions, machine)
	if seeds == "judging" {
		return text + fmt.Sprintf("Rules and limits were chosen with models of the seeds %s in view. The models of this page have the seeds %s. "+
			"Their verdicts were unread before this run, and nothing was tuned on them.\n", numbersText(tuningSeeds), numbersText(of))
	}
	return text + "These are the seeds for tuning: rules and limits may change because of this page.\n"
}

func numbersText(numbers []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ", ")
}

// sorted are the records of trained models, sorted by what they show of the verifier.
type sorted struct {
	fine, bad      []engineRecord // honest engines without harm, and with it
	harmful, other []engineRecord // faults with harm, and faults that change something without harm
	same           []engineRecord // faults that change no bit
	notBuilt       []engineRecord
}

func sortTrained(all []engineRecord) (s sorted) {
	for _, r := range all {
		switch {
		case r.Error != "":
			s.notBuilt = append(s.notBuilt, r)
		case r.Fault == "" && r.Harm == "":
			s.fine = append(s.fine, r)
		case r.Fault == "":
			s.bad = append(s.bad, r)
		case r.Harm != "":
			s.harmful = append(s.harmful, r)
		case r.Effect.Differs:
			s.other = append(s.other, r)
		default:
			s.same = append(s.same, r)
		}
	}
	return s
}

// caught are the engines that do not pass. Without rules, those that another rule keeps from it.
func caught(all []engineRecord, without ...string) (n int) {
	for _, r := range all {
		if !r.passed() && slices.ContainsFunc(r.rules(), func(rule string) bool { return !slices.Contains(without, rule) }) {
			n++
		}
	}
	return n
}

func withPrecision(all []engineRecord, prefix string) []engineRecord {
	return slices.DeleteFunc(slices.Clone(all), func(r engineRecord) bool { return !strings.HasPrefix(r.Variant, prefix) })
}

func ofKind(all []engineRecord, kind string) []engineRecord {
	return slices.DeleteFunc(slices.Clone(all), func(r engineRecord) bool { return r.Kind != kind })
}

// trainedPage is docs/validation-trained.md.
func trainedPage(all []engineRecord, head string) string {
	all = slices.Clone(all)
	for i := range all {
		all[i].judgeHarm(all) // by the definition of this program
	}
	s := sortTrained(all)
	var b strings.Builder
	fmt.Fprintf(&b, "# Validation of the verifier on trained models\n\n%s\n%s", head, harmText())
	fmt.Fprintf(&b, "\n## Result\n\nIntervals are exact, two-sided, of 95 %%. They take engines as independent, and engines of one model are not quite.\n"+
		"*Without labels* counts the engines that another rule than accuracy on the labels keeps from a pass.\n\n"+
		"| engines | | number | | share | interval | of them undecided | without labels |\n|---|---|--:|--:|--:|---|--:|--:|\n")
	line := func(name, precision, verb string, of []engineRecord) {
		n := caught(of)
		low, high := interval(n, len(of))
		fmt.Fprintf(&b, "| %s | %s | %d | %d %s | %s | %s to %s | %d | %d |\n", name, precision, len(of), n, verb,
			percent(float64(n)/float64(max(len(of), 1))), percent(low), percent(high), undecided(of), caught(of, labelsRule))
	}
	for _, precision := range []string{"fp32", "fp16", "int8"} {
		line("faults that harm", precision, "caught", withPrecision(s.harmful, precision))
	}
	line("faults that harm", "all", "caught", s.harmful)
	for _, precision := range []string{"fp32", "fp16", "int8"} {
		line("honest, fine", precision, "refused", withPrecision(s.fine, precision))
	}
	line("honest, fine", "all", "refused", s.fine)
	line("honest, with harm", "all", "refused", s.bad)
	line("faults without harm", "all", "refused", s.other)
	fmt.Fprintf(&b, "\n%d more faults change no bit of any case, %d of them were refused. "+
		"A refused engine has a median of %d reasons, by a median of %d rules.\n", len(s.same), caught(s.same),
		median(all, func(r engineRecord) int { return len(r.Reasons) }), median(all, func(r engineRecord) int { return len(r.rules()) }))
	apart := slices.DeleteFunc(slices.Clone(s.harmful), func(r engineRecord) bool {
		return !slices.ContainsFunc(s.fine, func(h engineRecord) bool { return h.like(r) && h.passed() })
	})
	fmt.Fprintf(&b, "\nAn engine that is caught proves little if the honest engine is refused, too. The honest engine of the same model, runtime and variant passes for %d of the "+
		"faults that harm; %d of these are caught.\n", len(apart), caught(apart))
	s.kinds(&b)
	s.lines(&b)
	s.rules(&b)
	s.fewest(&b)
	s.lists(&b)
	return b.String()
}

// harmText defines harm, with the allowances of the code.
func harmText() string {
	return fmt.Sprintf(`Models of 13 kinds are trained on structured data for up to a minute (pipeline/validation/testdata/trained), built and verified by the real
pipeline. The spec is the draft of `+"`mlpromote init`"+` with variants, calibration and, for OpenVINO, a target added: kinds of outputs are guessed, and accuracy on
the labels has the limit that init writes. *Honest* engines are the output of the toolchains. *Faults* are in the graph that is compiled, or in the
calibration. The reference model stays as it is. Detection, embedding and decoder are judged without labels, because init does not take theirs.

## Harm

The task of the model decides whether an engine does harm, not the figures of verify. The definition was written before any model of the judging seeds was verified. An engine
harms if any of these holds:

1. A value is not finite, and the reference's is.
2. The metric of the task gets worse on the labels: in fp32 and fp16 by more than %g points, or an error by more than %g %%. In int8 a fault harms
   if it loses %g points or %g %% more than the honest engine of the same model, runtime and variant. An honest engine in int8 harms by %g points or %g %%;
   if it does, its faults are held to this, too.
3. A group loses more than half of its metric, or its error grows by more than half; of faults in int8 also by more than 1.5 times the honest
   engine's loss. A group is a class, a quarter of the values, a category or half of a picture. Groups in which the reference itself is below %g do not count.
4. More than %g %% of the answers change; in int8 more than %g %% and twice the share that the honest engine changes. Changed answers of honest engines in int8 do not
   count as long as the metric stays.
5. A state is wrong by more than %g of its spread; in int8 by %g and twice the honest engine's error, and for honest engines by %g.

Metrics: accuracy, mean intersection over union, mAP at an overlap of 0.5, AUC, perplexity, mean absolute error, mean relative error, recall at 1.
`, 100*exact.points, 100*exact.growth, 100*overHonest.points, 100*overHonest.growth, 100*rounded.points, 100*rounded.growth, leastGroup,
		100*exact.changed, 100*overHonest.changed, exact.state, overHonest.state, rounded.state)
}

func undecided(all []engineRecord) (n int) {
	for _, r := range all {
		if r.Verdict == evidence.VerdictUndecided {
			n++
		}
	}
	return n
}

func median(all []engineRecord, number func(engineRecord) int) int {
	var numbers []int
	for _, r := range all {
		if r.Error == "" && !r.passed() {
			numbers = append(numbers, number(r))
		}
	}
	if len(numbers) == 0 {
		return 0
	}
	slices.Sort(numbers)
	return numbers[len(numbers)/2]
}

// kinds is the table of the kinds of models.
func (s sorted) kinds(b *strings.Builder) {
	b.WriteString("\n## By kind of model\n\n| kind | metric, of the references | honest, fine | refused | honest, with harm | refused | faults that harm | caught | without labels |\n" +
		"|---|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, kind := range trainedKinds {
		fine, bad, harmful := ofKind(s.fine, kind), ofKind(s.bad, kind), ofKind(s.harmful, kind)
		references := make(map[int]string)
		for _, r := range slices.Concat(fine, bad) {
			references[r.Seed] = fmt.Sprintf("%.3g", r.Effect.Reference)
		}
		if len(references) == 0 {
			continue
		}
		var values []string
		for _, seed := range slices.Sorted(maps.Keys(references)) {
			values = append(values, references[seed])
		}
		fmt.Fprintf(b, "| %s | %s %s | %d | %d | %d | %d | %d | %d | %d |\n", kind, slices.Concat(fine, bad)[0].Effect.Metric, strings.Join(values, ", "),
			len(fine), caught(fine), len(bad), caught(bad), len(harmful), caught(harmful), caught(harmful, labelsRule))
	}
}

// rules is the table of the rules.
func (s sorted) rules(b *strings.Builder) {
	b.WriteString("\n## By rule\n\nA rule is a figure of the cases or a trial beyond them. *Lost* are engines that no other rule keeps from a pass.\n\n" +
		"| rule | fired on faults that harm | lost without it | fired on faults without harm | lost | fired on honest, fine | saved without it | fired on honest, with harm | lost |\n" +
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	fired := make(map[string]map[string]int)
	count := func(column string, all []engineRecord) {
		for _, r := range all {
			rules := r.rules()
			if r.passed() {
				continue
			}
			for _, rule := range rules {
				if fired[rule] == nil {
					fired[rule] = make(map[string]int)
				}
				fired[rule][column]++
				if len(rules) == 1 {
					fired[rule][column+" alone"]++
				}
			}
		}
	}
	columns := []string{"harmful", "other", "fine", "bad"}
	for i, of := range [][]engineRecord{s.harmful, s.other, s.fine, s.bad} {
		count(columns[i], of)
	}
	names := slices.SortedFunc(maps.Keys(fired), func(a, b string) int {
		return cmp.Or(cmp.Compare(fired[b]["harmful"], fired[a]["harmful"]), cmp.Compare(a, b))
	})
	for _, name := range names {
		fmt.Fprintf(b, "| %s ", name)
		for _, column := range columns {
			fmt.Fprintf(b, "| %d | %d ", fired[name][column], fired[name][column+" alone"])
		}
		b.WriteString("|\n")
	}
}

// fewest is the table of the rules that are needed: each one catches the most of the faults that those above it leave.
func (s sorted) fewest(b *strings.Builder) {
	b.WriteString("\n## The fewest rules\n\nEach row adds the rule that catches the most faults that harm among the remaining ones; of equal ones the rule that " +
		"refuses fewer honest engines, then the first by name. Rules that are not in the table catch nothing more.\n\n" +
		"| rule | faults that harm, caught so far | honest, fine, refused so far |\n|---|--:|--:|\n")
	by := func(all []engineRecord, rules []string) (n int) {
		for _, r := range all {
			if !r.passed() && slices.ContainsFunc(r.rules(), func(rule string) bool { return slices.Contains(rules, rule) }) {
				n++
			}
		}
		return n
	}
	names := make(map[string]bool)
	for _, r := range s.harmful {
		for _, rule := range r.rules() {
			names[rule] = true
		}
	}
	var chosen []string
	for have := 0; have < caught(s.harmful); {
		best := slices.MinFunc(slices.Sorted(maps.Keys(names)), func(x, y string) int {
			return cmp.Or(cmp.Compare(by(s.harmful, append(slices.Clone(chosen), y)), by(s.harmful, append(slices.Clone(chosen), x))),
				cmp.Compare(by(s.fine, append(slices.Clone(chosen), x)), by(s.fine, append(slices.Clone(chosen), y))))
		})
		chosen = append(chosen, best)
		have = by(s.harmful, chosen)
		fmt.Fprintf(b, "| %s | %d | %d |\n", best, have, by(s.fine, chosen))
	}
}

// lines is the table of the lines of a report, each of which is several rules.
func (s sorted) lines(b *strings.Builder) {
	b.WriteString("\n## By line of the report\n\n| line | fired on faults that harm | lost without it | fired on honest, fine | saved without it |\n|---|--:|--:|--:|--:|\n")
	count := func(all []engineRecord, line figure.Line) (fired, alone int) {
		for _, r := range all {
			lines := r.lines()
			if r.passed() || !slices.Contains(lines, line) {
				continue
			}
			if fired++; len(lines) == 1 {
				alone++
			}
		}
		return fired, alone
	}
	for _, line := range figure.Lines() {
		fired, lost := count(s.harmful, line)
		alarms, saved := count(s.fine, line)
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d |\n", line, fired, lost, alarms, saved)
	}
}

// lists are the engines on which the verifier was wrong, and the honest engines with harm.
func (s sorted) lists(b *strings.Builder) {
	missed := slices.DeleteFunc(slices.Clone(s.harmful), func(r engineRecord) bool { return !r.passed() })
	refused := slices.DeleteFunc(slices.Clone(s.fine), engineRecord.passed)
	list(b, "Faults that harm and pass", "The checks with the least margins are in the last column.", missed, closest)
	list(b, "Honest engines that are fine and refused", "", refused, reasonsText)
	list(b, "Honest engines with harm", "", s.bad, func(r engineRecord) string { return string(r.Verdict) + ": " + reasonsText(r) })
	list(b, "Engines without a verdict", "", s.notBuilt, func(r engineRecord) string { return r.Error })
}

func list(b *strings.Builder, title, about string, all []engineRecord, text func(engineRecord) string) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	if about != "" {
		fmt.Fprintf(b, "%s\n\n", about)
	}
	b.WriteString("| model | runtime | variant | fault | harm | |\n|---|---|---|---|---|---|\n")
	plain := strings.NewReplacer("|", "\\|", "\n", " ", "*", "\\*", "_", "\\_", "<", "", ">", "")
	for _, r := range all {
		last := []rune(plain.Replace(text(r)))
		fmt.Fprintf(b, "| %s %d | %s | %s | %s | %s | %s |\n", r.Kind, r.Seed, r.Runtime, r.Variant, orHonest(r.Fault), plain.Replace(r.Harm), string(last[:min(len(last), 500)]))
	}
}

func reasonsText(r engineRecord) string {
	var texts []string
	for _, reason := range r.Reasons {
		texts = append(texts, reason.Message)
	}
	return strings.Join(texts, "; ")
}

// closest lists the three checks of the cases with the least margins.
func closest(r engineRecord) string {
	checks := slices.DeleteFunc(r.Checks.OfCases(), func(c evidence.Check) bool { return c.Limit == nil })
	slices.SortStableFunc(checks, func(a, b evidence.Check) int { return cmp.Compare(validators.Margin(a), validators.Margin(b)) })
	var texts []string
	for _, c := range checks[:min(len(checks), 3)] {
		texts = append(texts, strings.TrimSpace(fmt.Sprintf("%s %s %.3g, limit %.3g", c.Output, c.Figure, float64(c.Value), float64(*c.Limit))))
	}
	return strings.Join(texts, "; ")
}
