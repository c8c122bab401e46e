package validators

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/figure"
)

// The presets. [DefaultLimits] gives the limits of PresetDefault, which is meant where none is named.
// PresetStrict allows half of its errors. The others are PresetDefault and the rule of MLPerf
// Inference: the accuracy of an engine is at least 99 % or 99.9 % of the reference's.
const (
	PresetDefault   = "default"
	PresetStrict    = "strict"
	PresetMLPerf99  = "mlperf-99"
	PresetMLPerf999 = "mlperf-99.9"
)

// Presets lists the names of the presets.
func Presets() []string {
	return []string{PresetStrict, PresetDefault, PresetMLPerf99, PresetMLPerf999}
}

// PresetRelative returns the accuracy that a preset asks for, as a share of the reference's; nil for none.
func PresetRelative(preset string) *AtLeast {
	switch preset {
	case PresetMLPerf99:
		return &AtLeast{0.99}
	case PresetMLPerf999:
		return &AtLeast{0.999}
	}
	return nil
}

// The precisions that limits can be given for.
const (
	PrecisionFP32 = "fp32"
	PrecisionFP16 = "fp16"
	PrecisionBF16 = "bf16"
	PrecisionFP8  = "fp8"
	PrecisionInt8 = "int8"
	PrecisionInt4 = "int4"
)

// Precisions lists the precisions, the finest first.
func Precisions() []string {
	return []string{PrecisionFP32, PrecisionBF16, PrecisionFP16, PrecisionFP8, PrecisionInt8, PrecisionInt4}
}

// LimitOverrides is what a spec says beside its preset. The zero value says nothing.
type LimitOverrides struct {
	Outputs    map[string]OutputLimits            // figure by figure in place of the preset's, in every precision
	Precisions map[string]map[string]OutputLimits // by precision and output: figure by figure in place of both
	Accuracy   *AccuracyLimit
	Latency    LatencyLimits
	MinCases   int     // 0 means 1
	Confidence float64 // 0 means [DefaultConfidence]
	// Consistency is nil where nothing is said.
	Consistency *ConsistencyLimits
}

// ExpandPreset gives the limits that a preset stands for, for every output of the
// interface in each of the precisions, with the overrides in it. Compressed precisions start from the
// limits of int8, with the overrides of the precisions of [LimitedLike] in them. The preset limits rates to what the number of
// cases can prove. An empty name means [PresetDefault]. Errors: CodeInvalid for an
// unknown preset, precision or output, and those of [Limits.Validate].
func ExpandPreset(name string, i Interface, precisions []string, cases int, overrides LimitOverrides) (Limits, error) {
	name = cmp.Or(name, PresetDefault)
	if !slices.Contains(Presets(), name) {
		return Limits{}, registry.Errorf(registry.CodeInvalid,
			"limits preset %q: want %s", name, strings.Join(Presets(), ", "))
	}
	if err := overrides.check(i, precisions); err != nil {
		return Limits{}, err
	}
	accuracy, err := i.presetAccuracy(name, overrides.Accuracy)
	if err != nil {
		return Limits{}, err
	}
	limits := Limits{
		V: LimitsVersion, Precisions: make(map[string]PrecisionLimits, len(precisions)),
		Accuracy: accuracy, Latency: overrides.Latency, MinCases: max(overrides.MinCases, 1),
		Confidence: cmp.Or(overrides.Confidence, DefaultConfidence), Consistency: overrides.Consistency,
	}
	for _, precision := range precisions {
		outputs := make(map[string]OutputLimits, len(i.Outputs))
		for _, output := range i.Outputs {
			preset, err := presetLimits(name, precision, output, cases)
			if err != nil {
				return Limits{}, err
			}
			limited := preset.with(overrides.Outputs[output.Name])
			for _, other := range LimitedLike(precision) {
				limited = limited.with(overrides.Precisions[other][output.Name])
			}
			outputs[output.Name] = limited.with(overrides.Precisions[precision][output.Name])
		}
		limits.Precisions[precision] = PrecisionLimits{Outputs: outputs}
	}
	return limits, limits.Validate()
}

// LimitedLike lists the precisions whose overrides hold for a compressed one too, the less specific first: int8, by which all are judged,
// and int4 for its own numbers, which say more of the errors than int8 does. Overrides of finer numbers say what their rounding may cost,
// which no engine keeps that computes another function. It is nil for a precision that is not compressed.
func LimitedLike(precision string) []string {
	switch numbers, compressed := artifact.NumberFormat(precision); {
	case !compressed:
		return nil
	case numbers == PrecisionInt4:
		return []string{PrecisionInt8, PrecisionInt4}
	}
	return []string{PrecisionInt8}
}

// Unbound says which limits of numbers do not hold for the compressed engines with these numbers, and what to write. It is empty where
// there are none, or where the spec says limits for the compressed ones.
func (o LimitOverrides) Unbound(precisions []string) string {
	var found []string
	for _, precision := range precisions {
		numbers, compressed := artifact.NumberFormat(precision)
		_, said := o.Precisions[numbers]
		if _, own := o.Precisions[precision]; compressed && said && !own && !slices.Contains(LimitedLike(precision), numbers) {
			found = append(found, fmt.Sprintf("what they say of %s does not hold for %s, which has those of int8: for others, write precisions: {%s: ...}",
				numbers, precision, precision))
		}
	}
	return strings.Join(found, "; ")
}

// presetAccuracy is the limit on accuracy of a preset, with what a spec says in it. A preset that has
// one takes the metric of the spec, or else that of the outputs.
func (i Interface) presetAccuracy(preset string, said *AccuracyLimit) (*AccuracyLimit, error) {
	relative := PresetRelative(preset)
	if relative == nil {
		return said, nil
	}
	if said != nil {
		own := *said
		if own.Relative == nil {
			own.Relative = relative
		}
		return &own, nil
	}
	metric, output, ok, err := i.Accuracy(nil)
	if err == nil && !ok {
		err = registry.Errorf(registry.CodeInvalid,
			"limits.preset %s asks for accuracy, and no output says by which metric: name one in limits.accuracy.metric", preset)
	}
	return &AccuracyLimit{Metric: metric.Name, Output: output.Name, Relative: relative}, err
}

// check checks that all that is said is about something that there is.
func (o LimitOverrides) check(i Interface, precisions []string) error {
	said := []map[string]OutputLimits{o.Outputs}
	for _, precision := range slices.Sorted(maps.Keys(o.Precisions)) {
		inherits := func(built string) bool { return built == precision || slices.Contains(LimitedLike(built), precision) }
		if !slices.ContainsFunc(precisions, inherits) {
			return registry.Errorf(registry.CodeInvalid,
				"limits: no engine is of precision %q: there are %s", precision, list(precisions))
		}
		said = append(said, o.Precisions[precision])
	}
	for _, outputs := range said {
		for _, name := range slices.Sorted(maps.Keys(outputs)) {
			output, ok := i.Output(name)
			if !ok {
				return registry.Errorf(registry.CodeInvalid,
					"limits: the model has no output %q: there are %s", name, list(names(i.Outputs)))
			}
			if err := i.checkWhere(output, outputs[name].Where); err != nil {
				return err
			}
		}
	}
	return nil
}

func names(tensors []TensorInfo) []string {
	var all []string
	for _, t := range tensors {
		all = append(all, t.Name)
	}
	return all
}

// checkWhere checks that an input can say which elements of an output count. Whether
// its symbols stand for the sizes that the output's do is seen when both are there.
func (i Interface) checkWhere(output TensorInfo, where string) error {
	if where == "" {
		return nil
	}
	mask, ok := i.Input(where)
	if !ok {
		return registry.Errorf(registry.CodeInvalid,
			"output %q counts where %q is not 0, and the model has no such input: there are %s", output.Name, where, list(names(i.Inputs)))
	}
	fits := len(mask.Shape) > 0 && len(mask.Shape) <= len(output.Shape)
	for axis := 0; fits && axis < len(mask.Shape); axis++ {
		have, want := mask.Shape[axis], output.Shape[axis]
		fits = have == want || have.Symbol != "" || want.Symbol != ""
	}
	if !fits {
		return registry.Errorf(registry.CodeInvalid,
			"output %q of shape %v cannot count where input %q of shape %v is not 0: want an input whose dimensions are the output's first",
			output.Name, output.Shape, where, mask.Shape)
	}
	return nil
}

// with gives the limits with those of other in place of its own.
func (o OutputLimits) with(other OutputLimits) OutputLimits {
	o.Where = cmp.Or(other.Where, o.Where)
	override(&o.RTol, other.RTol)
	override(&o.ATol, other.ATol)
	for _, row := range figure.OfOutputs() {
		if own := other.field(row); !own.IsNil() {
			o.field(row).Set(own)
			o.QuartersAlone = o.QuartersAlone && !row.OfSpread
		}
	}
	override(&o.PerChannel, other.PerChannel)
	if !o.perChannel() {
		o.PerChannel = nil // stored limits have true or nothing
	}
	return o
}

func override[T any](own **T, other *T) {
	if other != nil {
		*own = other
	}
}
