//go:build cgo

package validation_test

import (
	"math"
	"slices"
	"strings"
)

// verdicts sorts records of engines into what they show of the verifier.
type verdicts struct {
	honest      []record // with a verdict
	falseAlarms []record
	counted     []record // with a fault that the outputs show
	missed      []record // of those
	equivalent  []record // with a fault that they do not show
	notBuilt    []record
	alone       []record // with a fault, and without honest engines to compare with
	bounds      map[string]float64
	pooled      map[string]float64 // bounds by honest engines of all models
}

// sortOut decides which faults count: those with a figure above twice the 99th percentile of what
// honest engines of the same model, runtime and variant have.
func sortOut(all []record) verdicts {
	v := verdicts{bounds: make(map[string]float64), pooled: make(map[string]float64)}
	seen, seenOfAll := make(map[string][]float64), make(map[string][]float64)
	for _, r := range all {
		switch {
		case r.Error != "":
			v.notBuilt = append(v.notBuilt, r)
		case r.Fault == "":
			v.honest = append(v.honest, r)
			if !r.passed() {
				v.falseAlarms = append(v.falseAlarms, r)
			}
			for figure := range r.Effects {
				seen[r.group(figure)] = append(seen[r.group(figure)], r.effect(figure))
				seenOfAll[r.pool(figure)] = append(seenOfAll[r.pool(figure)], r.effect(figure))
			}
		}
	}
	for group, values := range seen {
		v.bounds[group] = 2 * percentile(values, 0.99)
	}
	for pool, values := range seenOfAll {
		v.pooled[pool] = 2 * percentile(values, 0.99)
	}
	// A difference between runs or batches counts where it is more than honest engines are off from the reference.
	for _, r := range v.honest {
		for _, kind := range []string{"repeat", "process", "load", "batch"} {
			group := r.group("consistency " + kind)
			v.bounds[group] = max(v.bounds[group], v.bounds[r.group("consistency dimension")])
		}
	}
	for _, r := range all {
		if r.Fault == "" || r.Error != "" {
			continue
		}
		if _, ok := v.bounds[r.group("consistency repeat")]; !ok {
			v.alone = append(v.alone, r)
			continue
		}
		if figure, _ := v.shown(r); figure == "" {
			v.equivalent = append(v.equivalent, r)
			continue
		}
		v.counted = append(v.counted, r)
		if r.passed() {
			v.missed = append(v.missed, r)
		}
	}
	return v
}

// group names the honest engines that an engine is compared with in a figure.
func (r record) group(figure string) string {
	return strings.Join([]string{r.Family, r.Runtime, r.Variant, figure}, "/")
}

// pool names the honest engines of all models that an engine is compared with in a figure, of whichever output.
func (r record) pool(figure string) string {
	if kind, ok := strings.CutPrefix(figure, "consistency "); ok {
		return r.Variant + "/consistency " + kind
	}
	return r.Variant + "/" + figure[strings.LastIndex(figure, " ")+1:]
}

// beyondAll are the engines of these with a figure beyond twice what honest ones of all models have.
func (v verdicts) beyondAll(all []record) []record {
	return slices.DeleteFunc(slices.Clone(all), func(r record) bool {
		for figure := range r.Effects {
			if bound, ok := v.pooled[r.pool(figure)]; ok && r.effect(figure) > bound {
				return false
			}
		}
		return true
	})
}

// effect is a figure of an engine, 0 for none. Decibels become the ratio of error and spread.
func (r record) effect(figure string) float64 {
	value := float64(r.Effects[figure])
	if strings.HasSuffix(figure, " snrDb") {
		return math.Pow(10, value/20)
	}
	return value
}

// shown returns the figure in which an engine is furthest from twice what honest ones have, and how
// many times that is; "" if it is below it in all.
func (v verdicts) shown(r record) (figure string, times float64) {
	for name := range r.Effects {
		bound, ok := v.bounds[r.group(name)]
		value := r.effect(name)
		if !ok || !(value > bound) {
			continue
		}
		if ratio := value / bound; ratio > times || ratio == times && name < figure {
			figure, times = name, ratio
		}
	}
	return figure, times
}

// percentile is the smallest value that at least this part of the values does not exceed.
func percentile(values []float64, part float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(int(math.Ceil(part*float64(len(sorted))))-1, 0)]
}
