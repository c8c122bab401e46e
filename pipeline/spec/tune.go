package spec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// Objective is what `mlpromote tune` looks for. It decides nothing about a build.
type Objective struct {
	Max       string    `yaml:"max" doc:"What should be as much as possible" enum:"throughput,accuracy"`
	Min       string    `yaml:"min" doc:"What should be as little as possible" enum:"latency,size"`
	SubjectTo SubjectTo `yaml:"subject_to" doc:"What must be kept beside the limits"`
}

// SubjectTo are the constraints of an objective.
type SubjectTo struct {
	P50          Duration  `yaml:"p50" doc:"Median of a run at most"`
	P99          Duration  `yaml:"p99" doc:"99th percentile of a run at most"`
	AccuracyDrop *Fraction `yaml:"accuracy_drop" doc:"Accuracy of the reference minus that of the engine at most, on labelled cases"`
}

// Tune is what `mlpromote tune` tries.
type Tune struct {
	Variants []Variant  `yaml:"variants" doc:"Variants to try; one of each method that the spec has what it takes for where nothing is said"`
	Exclude  [][]string `yaml:"exclude" doc:"Lists of nodes: every quantized variant is tried without quantizing those of each list, too"`
}

// Goals of an objective.
const (
	GoalThroughput = "throughput" // the default
	GoalAccuracy   = "accuracy"
	GoalLatency    = "latency"
	GoalSize       = "size"
)

// Goal is what is to be as good as possible.
func (o Objective) Goal() string { return cmp.Or(o.Max, o.Min, GoalThroughput) }

func (c checker) checkTune() {
	o := c.Objective
	if o.Max != "" && o.Min != "" {
		c.problem(at("objective"), "objective has both max and min: want one")
	}
	if o.Max != "" {
		c.oneOf(at("objective", "max"), "objective", o.Max, []string{GoalThroughput, GoalAccuracy}, nil)
	}
	if o.Min != "" {
		c.oneOf(at("objective", "min"), "objective", o.Min, []string{GoalLatency, GoalSize}, nil)
	}
	labelled := c.Cases.Labels != ""
	if drop := o.SubjectTo.AccuracyDrop; drop != nil && (*drop < 0 || *drop > 1) {
		c.problem(at("objective", "subject_to", "accuracy_drop"), "accuracy_drop %v: want from 0 to 100%%", float64(*drop))
	} else if drop != nil && !labelled {
		c.problem(at("objective", "subject_to", "accuracy_drop"),
			"accuracy needs right answers: name the tensor that holds them in cases: {path: FOLDER, labels: NAME}")
	}
	for i, v := range c.Tune.Variants {
		c.checkVariant(at("tune", "variants", i), v)
	}
	for i, list := range c.Tune.Exclude {
		if len(list) == 0 {
			c.problem(at("tune", "exclude", i),
				"the list is empty: want names of nodes; the variant without any is tried anyway")
		}
	}
	if len(c.Tune.Variants)+len(c.Tune.Exclude) > 0 { // else names of variants alone can clash, which is said of them
		c.report(c.tries(), "tune", "variants")
	}
}

// tried lists the precisions of variants, and those that only tune tries: limits can be of both.
func (c checker) tried() []string {
	all := c.Precisions()
	for _, v := range c.Tune.Variants {
		if !slices.Contains(all, v.Precision) {
			all = append(all, v.Precision)
		}
	}
	return all
}

// tries checks that names of what is tried differ.
func (c checker) tries() error {
	seen := make(map[string]string)
	for _, v := range c.Candidates() {
		if other, ok := seen[v.Name]; ok && other != v.Flow() {
			return registry.Errorf(registry.CodeInvalid, "two variants to try are called %s: %s and %s", v.Name, other, v.Flow())
		}
		seen[v.Name] = v.Flow()
	}
	return nil
}

// Candidates lists the variants to try: those of tune, or else one of each method that
// calibration and the source allow; each also without the nodes of every list to exclude.
// Variants that the spec has are among them.
func (s *Spec) Candidates() []Variant {
	base := slices.Clone(s.Variants)
	more, declared := s.Tune.Variants, len(s.Tune.Variants) > 0
	if !declared {
		more = s.usual()
	}
	for _, v := range more {
		known := func(have Variant) bool { return have.says() == v.says() || !declared && have.Name == v.Name }
		if !slices.ContainsFunc(base, known) {
			base = append(base, v)
		}
	}
	var all []Variant
	for _, v := range base {
		all = append(all, v)
		for i, list := range s.Tune.Exclude {
			if v.Quantize == nil || v.Quantize.Method == MethodNone {
				break
			}
			q := *v.Quantize
			q.Exclude = slices.Concat(q.Exclude, list)
			all = append(all, Variant{Name: fmt.Sprintf("%s-x%d", v.Name, i+1), Precision: v.Precision, Model: v.Model, Compress: v.Compress, Quantize: &q, Load: v.Load})
		}
	}
	return all
}

// says is what a variant is made by, whatever its name: two that say the same are one.
func (v Variant) says() string {
	said := v.Precision
	if v.Quantize != nil {
		said = v.Quantize.Flow()
	}
	if v.Compressed() {
		said += " of " + flow(reflect.ValueOf(v.Compress)) + " " + v.Model.Written
	}
	if v.Load != nil {
		said += " " + flow(reflect.ValueOf(*v.Load))
	}
	return said
}

// usual are the methods that a spec with calibration, or without, can try.
func (s *Spec) usual() []Variant {
	if slices.ContainsFunc(s.Variants, func(v Variant) bool {
		return v.Quantize != nil &&
			v.Quantize.Method == MethodNone && v.Model.Written == ""
	}) {
		return nil // the source is quantized already
	}
	methods := []Variant{
		{Name: "fp32"},
		{Name: "fp16"},
		{Name: "int8d", Quantize: &Quantize{Method: MethodDynamic}},
		{Name: "int4"},
	}
	if s.Calibration != nil {
		methods = append(methods,
			Variant{Name: "int8"},
			Variant{Name: "int8-channels", Quantize: &Quantize{Method: MethodStatic, PerChannel: true}},
			Variant{Name: "int8-entropy", Quantize: &Quantize{Method: MethodStatic, Observer: ObserverEntropy}},
		)
	}
	for i := range methods {
		methods[i].complete()
	}
	return methods
}

// OnCases is the spec with the cases of another folder, the limits of the default preset, and of accuracy
// the metric alone.
func (s *Spec) OnCases(folder string) *Spec {
	other := *s
	other.Cases = Cases{Path: Path{Written: folder}, Labels: s.Cases.Labels, Compare: s.Cases.Compare}
	other.Limits = Limits{}
	if a := s.Limits.Accuracy; a != nil {
		measured := *a
		measured.Min, measured.Max, measured.Drop, measured.Regression, measured.Slices = nil, nil, nil, nil, nil
		measured.Relative = &AtLeast{}
		other.Limits.Accuracy = &measured
	}
	return &other
}

// Trying is the spec with other variants, for the targets of these names alone.
func (s *Spec) Trying(variants []Variant, targets []string) *Spec {
	other := *s
	other.Variants, other.Targets = variants, nil
	var names []string
	for _, v := range variants {
		names = append(names, v.Name)
	}
	for _, t := range s.Targets {
		if slices.Contains(targets, t.Name) {
			t.Variants = names
			other.Targets = append(other.Targets, t)
		}
	}
	return &other
}
