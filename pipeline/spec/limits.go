package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/validators"
)

// Limits is how far an engine may be from the reference, as it is written: a preset
// and what differs from it.
type Limits struct {
	Preset     string                     `yaml:"preset" doc:"Limits to start from" enum:"strict,default,mlperf-99,mlperf-99.9"`
	Outputs    map[string]OutputLimits    `yaml:"outputs" doc:"Per output: limits in place of the preset's"`
	Precisions map[string]PrecisionLimits `yaml:"precisions" doc:"Per precision: figures that replace those of all precisions; the other figures stay"`
	Accuracy   *Accuracy                  `yaml:"accuracy" doc:"What may be lost on labelled cases"`
	Latency    Latency                    `yaml:"latency" doc:"How long a run may take"`
	MinCases   int                        `yaml:"min_cases" doc:"With fewer cases nothing is decided"`
	Confidence *Fraction                  `yaml:"confidence" doc:"At which limits on rates must hold; 95% where nothing is said"`

	Consistency *Consistency `yaml:"consistency" doc:"What runs beyond the cases must show, beside keeping the limits of outputs"`
}

// Consistency is what consistency checks must find. See [validators.ConsistencyLimits].
type Consistency struct {
	Jitter   string `yaml:"jitter" doc:"How far two runs of the same cases may differ: none is not at all, limits what the limits of outputs allow; a part of the engine's own error where nothing is said" enum:"none,limits"`
	Required bool   `yaml:"required" doc:"A check that did not run within its time leaves the engine undecided"`
	Rare     int    `yaml:"rare" doc:"As many repeated runs as miss a difference in one of so many requests at most half of the time, however long they take; 2 to 100000"`
}

// PrecisionLimits are limits for engines of one precision. A figure here replaces that figure of
// Outputs and of the preset; the other figures stay.
type PrecisionLimits struct {
	Outputs map[string]OutputLimits `yaml:"outputs,required" doc:"Per output: limits of this precision"`
}

// OutputLimits bound one output. See [validators.OutputLimits]. Beside the keys of its fields it
// has those of the figures that limits on outputs can bound.
type OutputLimits struct {
	RTol *float64 `yaml:"rtol" doc:"Of every element: |engine-reference| <= atol + rtol*|reference|"`
	ATol *float64 `yaml:"atol" doc:"See rtol"`

	PerChannel *bool `yaml:"per_channel" doc:"Take the standard deviation of each index along the last axis, for quantities with units of their own; false takes that of all values, also where the preset does not"`

	figures map[string]float64 // limits by the names of package figure
}

// writtenOutputLimits is the struct with all keys of OutputLimits.
func writtenOutputLimits() reflect.Type {
	var fields []reflect.StructField
	for _, row := range figure.OfOutputs() {
		fields = append(fields, reflect.StructField{Name: "Figure" + row.Name, Type: boundOf(row),
			Tag: reflect.StructTag(fmt.Sprintf("yaml:%q doc:%q", row.Key, row.Doc))})
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[OutputLimits]()) {
		own := reflect.StructField{Name: f.Name, Type: f.Type, Tag: f.Tag}
		switch {
		case f.Name == "PerChannel":
			fields = append(fields, own)
		case f.IsExported():
			fields = slices.Insert(fields, f.Index[0], own)
		}
	}
	return reflect.StructOf(fields)
}

// boundOf is the type of a limit on a figure. Shares and cosines can be written in percent.
func boundOf(row figure.Row) reflect.Type {
	switch {
	case row.Unit == figure.Decibels:
		return reflect.TypeFor[*Decibels]()
	case row.AtLeast:
		return reflect.TypeFor[*AtLeast]()
	}
	return reflect.TypeFor[*Absolute]()
}

// DecodeYAML reads the mapping.
func (o *OutputLimits) DecodeYAML(n *strictyaml.Node) {
	written := reflect.New(writtenOutputLimits())
	n.Decode(written.Interface())
	v := written.Elem()
	*o = OutputLimits{figures: make(map[string]float64)}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[OutputLimits]()) {
		if f.IsExported() {
			reflect.ValueOf(o).Elem().FieldByIndex(f.Index).Set(v.FieldByName(f.Name))
		}
	}
	for _, row := range figure.OfOutputs() {
		switch limit := v.FieldByName("Figure" + row.Name).Interface().(type) {
		case *Decibels:
			if limit != nil {
				o.figures[row.Name] = limit.Min
			}
		case *AtLeast:
			if limit != nil {
				o.figures[row.Name] = float64(limit.Min)
			}
		case *Absolute:
			if limit != nil {
				o.figures[row.Name] = limit.Max
			}
		}
	}
}

// AtLeast bounds a fraction from below.
type AtLeast struct {
	Min Fraction `yaml:"min,required" doc:"The least that is allowed"`
}

// AtMost bounds a fraction from above.
type AtMost struct {
	Max Fraction `yaml:"max,required" doc:"The most that is allowed"`
}

// Decibels bounds a ratio in dB from below.
type Decibels struct {
	Min float64 `yaml:"min,required" doc:"The least that is allowed, in dB"`
}

// Absolute bounds a difference from above.
type Absolute struct {
	Max float64 `yaml:"max,required" doc:"The most that is allowed"`
}

// Accuracy bounds what an engine may lose against the reference.
type Accuracy struct {
	Metric     string    `yaml:"metric,required" doc:"What is measured" enum:"top1,top2,top3,top5,top10,exact,prefix,f1_macro,f1_binary,miou,auc,auc_macro,r2,mae,mape,rmse,map50,map,perplexity,program"`
	Output     string    `yaml:"output" doc:"What is compared with the labels; the first output that fits the metric where nothing is said"`
	Drop       *AtMost   `yaml:"drop" doc:"Reference minus engine, or where less is better how much larger the engine's is, as a share of the reference's; by what the cases prove"`
	Min        *Fraction `yaml:"min" doc:"Of the engine at least, by what the cases prove"`
	Max        *Fraction `yaml:"max" doc:"Of the engine at most, for mae, mape, rmse and perplexity, by what the cases prove; 8% of mape is 0.08"`
	Relative   *AtLeast  `yaml:"relative" doc:"The engine's as a share of the reference's, or the reverse where less is better; by what the cases prove"`
	Slices     *Slices   `yaml:"slices" doc:"Accuracy on parts of the cases, each by itself"`
	Regression *AtMost   `yaml:"regression" doc:"As drop, from the engine now in the destination in place of the reference, on the same cases"`

	Program    Path        `yaml:"program" doc:"Of metric program: the Python file that gives each case a score"`
	Lower      bool        `yaml:"lower" doc:"Of metric program: less is better"`
	Detections *Detections `yaml:"detections" doc:"Of map50 and map: the outputs with boxes, scores and classes, where they are not one output"`
}

// MeasuredBy writes how accuracy is measured as keys of a spec, without bounds: "metric: top1".
func (a Accuracy) MeasuredBy() string {
	text := "metric: " + a.Metric
	if a.Program.Written != "" {
		text += fmt.Sprintf(", program: %q", a.Program.Written)
	}
	if a.Lower {
		text += ", lower: true"
	}
	if a.Output != "" {
		text += fmt.Sprintf(", output: %q", a.Output)
	}
	if d := a.Detections; d != nil {
		text += fmt.Sprintf(", detections: {boxes: %q, scores: %q, classes: %q}", d.Boxes, d.Scores, d.Classes)
	}
	return text
}

// Detections are the outputs of a model that finds boxes.
type Detections struct {
	Boxes   string `yaml:"boxes,required" doc:"Output [..., n, 4] with x1, y1, x2, y2"`
	Scores  string `yaml:"scores,required" doc:"Output [..., n]"`
	Classes string `yaml:"classes,required" doc:"Output [..., n] with whole numbers"`
}

// Slices bounds accuracy on each slice of the cases.
type Slices struct {
	By   string    `yaml:"by,required" doc:"Tensor of the cases that has the number of a slice for each case; at most 64 slices"`
	Min  *Fraction `yaml:"min" doc:"Of the engine at least, on each slice"`
	Max  *Fraction `yaml:"max" doc:"Of the engine at most, on each slice, for mae, mape, rmse and perplexity"`
	Drop *AtMost   `yaml:"drop" doc:"As drop of accuracy, on each slice"`
}

// Latency bounds the time of single runs.
type Latency struct {
	P50        *TimeAtMost `yaml:"p50" doc:"Median"`
	P99        *TimeAtMost `yaml:"p99" doc:"99th percentile"`
	Regression *AtMost     `yaml:"regression" doc:"How much slower than the engine now in the destination"`
}

// TimeAtMost bounds a time from above.
type TimeAtMost struct {
	Max Duration `yaml:"max,required" doc:"The most that is allowed"`
}

// Fraction is a number that may be written in percent: 0.005 or 0.5%.
type Fraction float64

// DecodeYAML reads a number, or one with a percent sign.
func (f *Fraction) DecodeYAML(n *strictyaml.Node) {
	if v, ok := n.Number(); ok {
		*f = Fraction(v)
		return
	}
	digits, percent := strings.CutSuffix(n.Text(), "%")
	digits = strings.TrimSpace(digits)
	v, err := strconv.ParseFloat(digits, 64)
	if !percent || err != nil || strings.Trim(digits, "+-.0123456789eE") != "" {
		n.Problemf("found %q: want a number, or one in percent such as 0.5%%", n.Text())
		return
	}
	// Scaled in decimal where possible, so that 0.5% is 0.005 and not its neighbour.
	scaled, err := strconv.ParseFloat(digits+"e-2", 64)
	if err != nil {
		scaled = v / 100
	}
	*f = Fraction(scaled)
}

// Duration is a time with its unit: 20ms, 150us, 1.5s.
type Duration time.Duration

// DecodeYAML reads a number with a unit.
func (d *Duration) DecodeYAML(n *strictyaml.Node) {
	v, err := time.ParseDuration(strings.ReplaceAll(n.Text(), " ", ""))
	if err != nil || v <= 0 {
		n.Problemf("found %q: want a time of more than nothing with its unit, such as 20ms, 150us or 1.5s", n.Text())
		return
	}
	*d = Duration(v)
}

func (a *Accuracy) validators() *validators.AccuracyLimit {
	if a == nil {
		return nil
	}
	out := &validators.AccuracyLimit{Metric: a.Metric, Output: a.Output, Drop: a.Drop.validators(),
		Relative: a.Relative.validators(), Regression: a.Regression.validators()}
	if a.Lower {
		out.Metric = validators.MetricProgramLower
	}
	out.Min, out.Max = atLeast(a.Min), atMost(a.Max)
	if d := a.Detections; d != nil {
		out.Detections = &validators.Detections{Boxes: d.Boxes, Scores: d.Scores, Classes: d.Classes}
	}
	if s := a.Slices; s != nil {
		out.Slices = &validators.SliceLimit{By: s.By, Min: atLeast(s.Min), Max: atMost(s.Max), Drop: s.Drop.validators()}
	}
	return out
}

func atLeast(v *Fraction) *validators.AtLeast {
	if v == nil {
		return nil
	}
	return &validators.AtLeast{Min: float64(*v)}
}

func atMost(v *Fraction) *validators.AtMost {
	if v == nil {
		return nil
	}
	return &validators.AtMost{Max: float64(*v)}
}

// check checks what is said of an output. per_channel is enough: the limits are the preset's then.
func (o OutputLimits) check() error {
	if o.PerChannel != nil && o.RTol == nil && o.ATol == nil && len(o.figures) == 0 {
		return nil
	}
	return o.validators().Validate()
}

func (o OutputLimits) validators() validators.OutputLimits {
	out := validators.OutputLimits{RTol: o.RTol, ATol: o.ATol, PerChannel: o.PerChannel}
	for name, limit := range o.figures {
		if row, known := figure.Find(name); known {
			out.SetBound(row, limit)
		}
	}
	return out
}

func (a *AtLeast) validators() *validators.AtLeast {
	if a == nil {
		return nil
	}
	return &validators.AtLeast{Min: float64(a.Min)}
}

func (a *AtMost) validators() *validators.AtMost {
	if a == nil {
		return nil
	}
	return &validators.AtMost{Max: float64(a.Max)}
}

func (t *TimeAtMost) validators() *validators.TimeAtMost {
	if t == nil {
		return nil
	}
	return &validators.TimeAtMost{MaxNs: time.Duration(t.Max)}
}
