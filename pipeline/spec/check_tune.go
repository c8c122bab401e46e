package spec

import (
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

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
