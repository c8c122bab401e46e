package environments

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// accuracy is what an environment requires of engines on labelled cases.
type accuracy struct {
	Metric     string  `yaml:"metric,required"`
	Min        *number `yaml:"min"`
	Max        *number `yaml:"max"`
	Regression *atMost `yaml:"regression"`
	Cases      digests `yaml:"cases"`
}

func (a *accuracy) requirement() *policy.AccuracyRequirement {
	if a == nil {
		return nil
	}
	r := &policy.AccuracyRequirement{Metric: a.Metric, Min: a.Min.figure(), Max: a.Max.figure(), Cases: a.Cases}
	if a.Regression != nil {
		r.Regression = a.Regression.Max.figure()
	}
	return r
}

// atMost and atLeast are limits as mlpromote.yaml writes them.
type (
	atMost struct {
		Max *number `yaml:"max,required"`
	}
	atLeast struct {
		Min *number `yaml:"min,required"`
	}
)

// number is a number, or a percentage such as 1%.
type number evidence.Figure

func (n *number) figure() *evidence.Figure { return (*evidence.Figure)(n) }

// DecodeYAML reads either form.
func (n *number) DecodeYAML(node *strictyaml.Node) {
	text, percent := strings.CutSuffix(node.Text(), "%")
	v, err := strconv.ParseFloat(text, 64)
	if node.Kind() != strictyaml.Scalar || err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		node.Problemf("want a number or a percentage, such as 0.01 or 1%%")
		return
	}
	if percent {
		v /= 100
	}
	*n = number(v)
}

// ceilings are the loosest limits, by precision and figure as mlpromote.yaml spells it.
type ceilings policy.Ceilings

// DecodeYAML reads the mapping.
func (c *ceilings) DecodeYAML(n *strictyaml.Node) {
	if n.Kind() != strictyaml.Mapping {
		n.Problemf("ceilings is %s: want a mapping from precision to figures, such as {int8: {max_error: {max: 2.5}}}", n.Kind())
		return
	}
	if len(n.Entries()) == 0 {
		n.Problemf("ceilings is empty: want a precision, such as {int8: {max_error: {max: 2.5}}}")
	}
	*c = make(ceilings)
	for _, precision := range n.Entries() {
		if precision.Value.Kind() != strictyaml.Mapping {
			precision.Value.Problemf("ceilings of %s is %s: want a mapping such as {max_error: {max: 2.5}}", precision.Key, precision.Value.Kind())
			continue
		}
		figures := make(map[string]evidence.Figure)
		for _, e := range precision.Value.Entries() {
			row, ok := figure.ByKey(e.Key)
			if !ok {
				e.Name.Problemf("unknown figure %q: want one of %q", e.Key, slices.Sorted(slices.Values(figure.Keys())))
				continue
			}
			if v := limitOn(row, e.Value); v != nil {
				figures[row.Name] = *v
			}
		}
		(*c)[precision.Key] = figures
	}
}

// limitOn reads the limit on a figure: {min: 12} where it must be large, else {max: 2.5}.
func limitOn(row figure.Row, n *strictyaml.Node) *evidence.Figure {
	if row.AtLeast {
		var v atLeast
		n.Decode(&v)
		return v.Min.figure()
	}
	var v atMost
	n.Decode(&v)
	return v.Max.figure()
}

// digests are digests of operator libraries, or of cases.
type digests []registry.Digest

// DecodeYAML reads the list. YAML parses an unquoted digest in brackets as a mapping, so that
// mistake gets its own message.
func (ds *digests) DecodeYAML(n *strictyaml.Node) {
	if n.Kind() != strictyaml.Sequence {
		n.Problemf("found %s: want a list of digests", n.Kind())
	}
	for _, item := range n.Items() {
		d := registry.Digest(item.Text())
		if item.Kind() != strictyaml.Scalar || d.Validate() != nil {
			item.Problemf("want a digest in quotes, \"sha256:\" and 64 hexadecimal digits; for a library it is what sha256sum prints")
		}
		*ds = append(*ds, d)
	}
}
