//go:build cgo

package validation_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/stats"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// changedSeeds is the last seed of the models by which default limits and rules were chosen.
const changedSeeds = 410

// whichModels says what the rates of a run are worth, whose first model has this seed.
func whichModels(first int) string {
	if first > changedSeeds {
		return fmt.Sprintf(`The default limits were set on models of the seeds 1 to 10. They and their rules were changed after those of the seeds 101 to 110, where
11 of 320 honest engines failed. They were changed again after those of the seeds 201 to 210, where 6 of 320 failed and 13 of 319 faults passed.
After those of the seeds 301 to 310, where 1 of 325 did not pass and 7 of 352 faults did, they were changed a third time. After those of the seeds 401 to 410, where 2 of 325 failed
and 7 of 348 faults passed, they were changed a fourth time, by the figures of engines of the seeds 1 to 80 ([what and why](decisions/0080-systematic-errors-beside-noise.md)). After those of the seeds
501 to 510, where 1 of 325 was undecided and 4 of 347 faults passed, rules were added for engines that were made to pass ([which](decisions/0088-what-counts-as-proof.md)). After those of
the seeds 701 to 710, where 2 of 325 did not pass and 3 of 356 faults did, the share of cases that are close became a figure ([why](decisions/0089-close-cases.md)). The models of this run have seeds
from %d on: the same architectures with other weights and data. Nothing was changed because of it. Of other architectures, expect
more false alarms and more faults that pass.
`, first)
	}
	return `The default limits were set with these results in view, on the same models, and where limits changed, engines whose verdict could not
change by that were not built again. So the rates say how well the limits fit these models. Of other models, expect more
false alarms and more faults that pass.
`
}

// page is docs/validation.md. made says when and with what it was made; first is the first seed.
func page(all []record, made string, first int) string {
	v := sortOut(all)
	var b strings.Builder
	fmt.Fprintf(&b, `# Validation of the verifier

%s wrote this page %s.

Small models with fitted last layers are built and verified by the real pipeline, with default limits. *Honest* engines are what the toolchains make of them. *Mutants* have one fault, planted into the
graph that is compiled, the calibration or the outputs. The reference stays as it is.

A mutant counts if one of its figures exceeds twice the 99th percentile of what honest engines of the same model, runtime and
variant have. Figures are errors relative to the spread of the reference, the number of other answers, and the largest difference that a
consistency check finds. A difference between two runs, or between a batch and single cases, counts where it is also twice what honest engines are off from the reference.
The other mutants are called equivalent, and listed. The second row has those of them alone that exceed twice the 99th percentile of the honest engines of all
models in the variant: default limits know a precision and not a model, so that of the others nothing but a limit for the model could tell. Intervals are exact, two-sided, of 95 %% (Clopper and Pearson). They
take engines as independent, which engines of one model are not quite.

%s
| | engines | | rate | interval |
|---|--:|--:|--:|---|
`, "`make validation`", made, whichModels(first))
	row(&b, "mutants that count", len(v.counted), "caught", len(v.counted)-len(v.missed))
	far, passed := v.beyondAll(v.counted), v.beyondAll(v.missed)
	row(&b, "of them beyond honest engines of all models", len(far), "caught", len(far)-len(passed))
	row(&b, "honest engines", len(v.honest), "false alarms", len(v.falseAlarms))
	fmt.Fprintf(&b, "\nOf %d mutants, %d count and %d are equivalent.\n", len(v.counted)+len(v.equivalent), len(v.counted), len(v.equivalent))
	if n := len(v.alone); n > 0 {
		fmt.Fprintf(&b, "%d more have no honest engines to be compared with yet: the run was stopped before its end.\n", n)
	}
	v.table(&b, "By fault", "fault", func(r record) string { return r.Fault })
	v.table(&b, "By variant", "variant", func(r record) string { return r.Variant })
	v.table(&b, "By model", "model", func(r record) string { return r.Family })
	v.table(&b, "By runtime", "runtime", func(r record) string { return r.Runtime })
	v.figures(&b)
	v.list(&b, "Mutants that pass although they count", missedAbout, v.missed, func(r record) string {
		figure, times := v.shown(r)
		return fmt.Sprintf("%s: %.3g, %.2g times the honest 99th percentile. %s", figure, r.effect(figure), 2*times, v.price(r))
	})
	v.list(&b, "False alarms", "", v.falseAlarms, func(r record) string { return r.First })
	v.list(&b, "Engines without a verdict", "These were not built or not loaded, for the reason beside them. They are not counted above.", v.notBuilt,
		func(r record) string { return r.Error })
	v.equivalents(&b)
	return b.String()
}

func row(b *strings.Builder, what string, n int, which string, k int) {
	low, high := interval(k, n)
	fmt.Fprintf(b, "| %s | %d | %d %s | %s | %s to %s |\n", what, n, k, which, percent(float64(k)/float64(max(n, 1))), percent(low), percent(high))
}

// interval is the exact two-sided one of 95 %, of k among n.
func interval(k, n int) (low, high float64) {
	return stats.LowerRate(float64(k), n, 0.975), stats.UpperRate(float64(k), n, 0.975)
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// table counts by a property of the engines.
func (v verdicts) table(b *strings.Builder, title, property string, of func(record) string) {
	fmt.Fprintf(b, "\n## %s\n\n| %s | count | caught | kill rate, interval | equivalent | honest | false alarms | reasons |\n|---|--:|--:|---|--:|--:|--:|---|\n", title, property)
	names := make(map[string]bool)
	for _, r := range slices.Concat(v.counted, v.equivalent, v.honest) {
		names[of(r)] = true
	}
	delete(names, "")
	in := func(all []record, name string) []record {
		return slices.DeleteFunc(slices.Clone(all), func(r record) bool { return of(r) != name })
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		counted, missed := in(v.counted, name), in(v.missed, name)
		rate := "-"
		if n := len(counted); n > 0 {
			low, high := interval(n-len(missed), n)
			rate = fmt.Sprintf("%s, %s to %s", percent(float64(n-len(missed))/float64(n)), percent(low), percent(high))
		}
		fmt.Fprintf(b, "| %s | %d | %d | %s | %d | %d | %d | %s |\n", name, len(counted), len(counted)-len(missed), rate,
			len(in(v.equivalent, name)), len(in(v.honest, name)), len(in(v.falseAlarms, name)), reasons(counted))
	}
}

// reasons are the three most frequent ones for which engines did not pass, each once per engine.
func reasons(all []record) string {
	count := make(map[string]int)
	for _, r := range all {
		for _, reason := range slices.Compact(slices.Sorted(slices.Values(r.Reasons))) {
			count[reason]++
		}
	}
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	return strings.Join(names[:min(len(names), 3)], ", ")
}

// figures shows what honest engines have beside the default limits.
func (v verdicts) figures(b *strings.Builder) {
	b.WriteString("\n## What honest engines have\n\nThe errors of the worst output of each honest engine, and the default limit. SNR is in dB. Of outputs with fewer than four values,\n" +
		"such as the price and the angles of the regressor, the error of a case is held to the limit of maxError, so that they are left out of caseError.\n" +
		"They may have 1.5 times the systematic error in int8, and a state has 6 dB more SNR.\n\n" +
		"| variant | figure | engines | median | 99th percentile | worst | limit |\n|---|---|--:|--:|--:|--:|--:|\n")
	by := make(map[string][]record)
	for _, r := range v.honest {
		by[r.Variant] = append(by[r.Variant], r)
	}
	for _, variant := range slices.Sorted(maps.Keys(by)) {
		limits, err := validators.DefaultLimits(precision(variant),
			validators.TensorInfo{Name: "y", Kind: validators.KindOther, DType: tensor.Float32, Shape: []validators.Dim{{Symbol: "batch"}, {Size: 10}}}, 400)
		if err != nil {
			panic(err)
		}
		for _, f := range []struct {
			name  string
			limit float64
		}{{"maxError", limits.MaxError.Max}, {"caseError", limits.CaseError.Max}, {"systematic", limits.Systematic.Max}, {"snrDb", -limits.SNRdB.Min}} {
			var values []float64
			for _, r := range by[variant] {
				worst := math.Inf(-1)
				for name := range r.Effects {
					few := strings.HasPrefix(name, "price ") || strings.HasPrefix(name, "angles ")
					if strings.HasSuffix(name, " "+f.name) && !(few && f.name == "caseError") {
						worst = max(worst, float64(r.Effects[name]))
					}
				}
				if !math.IsInf(worst, -1) || f.name == "snrDb" {
					values = append(values, worst)
				}
			}
			sign := 1.0
			if f.name == "snrDb" {
				sign = -1
			}
			fmt.Fprintf(b, "| %s | %s | %d | %.3g | %.3g | %.3g | %g |\n", variant, f.name, len(values),
				sign*percentile(values, 0.5), sign*percentile(values, 0.99), sign*slices.Max(values), sign*f.limit)
		}
	}
}

// precision is that of a variant.
func precision(variant string) string {
	name, _, _ := strings.Cut(variant, "-")
	return name
}

// list names engines, each with what is to be said of it. An empty list is not written.
func (verdicts) list(b *strings.Builder, title, about string, all []record, say func(record) string) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	if about != "" {
		fmt.Fprintf(b, "%s\n\n", about)
	}
	b.WriteString("| model | runtime | variant | fault | |\n|---|---|---|---|---|\n")
	for _, r := range all {
		said := []rune(strings.NewReplacer("|", "\\|", "\n", " ", "*", "\\*", "_", "\\_", "<", "", ">", "").Replace(say(r)))
		fmt.Fprintf(b, "| %s %d | %s | %s | %s | %s |\n", r.Family, r.Seed, r.Runtime, r.Variant, orHonest(r.Fault), string(said[:min(len(said), 400)]))
	}
}

// equivalents lists the faults that do not show, by model and variant.
func (v verdicts) equivalents(b *strings.Builder) {
	b.WriteString("\n## Equivalent mutants\n\n| fault | models and variants | of them stopped |\n|---|---|--:|\n")
	by, stopped := make(map[string]map[string][]string), make(map[string]int)
	for _, r := range v.equivalent {
		if by[r.Fault] == nil {
			by[r.Fault] = make(map[string][]string)
		}
		by[r.Fault][r.Family] = append(by[r.Fault][r.Family], r.Variant)
		if !r.passed() {
			stopped[r.Fault]++
		}
	}
	for _, fault := range slices.Sorted(maps.Keys(by)) {
		var parts []string
		for _, family := range slices.Sorted(maps.Keys(by[fault])) {
			parts = append(parts, family+" ("+strings.Join(slices.Sorted(slices.Values(by[fault][family])), ", ")+")")
		}
		fmt.Fprintf(b, "| %s | %s | %d |\n", fault, strings.Join(parts, "; "), stopped[fault])
	}
}
