package verify

import (
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
)

// An engine replaces the one with its label for the same machines, or else what this machine or its own machines get now.
func TestCounterpart(t *testing.T) {
	t.Parallel()
	at := func(name string, arch, level string) artifact.Target {
		return artifact.Target{V: 1, Name: name, OS: "linux", CPU: artifact.TargetCPU{Arch: arch, Level: level}}
	}
	engine := func(target artifact.Target, variant string) artifact.Engine {
		return artifact.Engine{Digest: digest.FromString(target.Name + variant), Target: target, Variant: variant}
	}
	narrow, wide, arm := at("narrow", "amd64", "v1"), at("wide", "amd64", "v3"), at("arm", "arm64", "")
	renamed := narrow
	renamed.Name = "other"
	for name, c := range map[string]struct {
		of    artifact.Engine
		there []artifact.Engine
		want  string // label; empty: none
	}{
		"its label":                        {engine(narrow, "int8"), []artifact.Engine{engine(narrow, "fp32"), engine(narrow, "int8")}, "narrow/int8"},
		"another label":                    {engine(narrow, "small"), []artifact.Engine{engine(narrow, "fp32")}, "narrow/fp32"},
		"another name of the same machine": {engine(renamed, "fp32"), []artifact.Engine{engine(narrow, "fp32")}, "narrow/fp32"},
		"its label, for other machines":    {engine(at("narrow", "amd64", "v3"), "fp32"), []artifact.Engine{engine(wide, "fp32"), engine(narrow, "fp32")}, "wide/fp32"},
		"for other machines alone":         {engine(arm, "fp32"), []artifact.Engine{engine(arm, "old")}, "arm/old"},
		"for no machine of its own":        {engine(narrow, "fp32"), nil, ""},
	} {
		h := Host{Node: artifact.Node{OS: "linux", CPU: artifact.NodeCPU{Arch: "amd64", Level: "v3"}}}
		got, ok := h.counterpart(c.of, c.there)
		if ok != (c.want != "") || ok && got.Label() != c.want {
			t.Errorf("%s: got %s, %t; want %q", name, got.Label(), ok, c.want)
		}
	}
}

// A report names the destination where limits compare with the engine that is there.
func TestDestinationOfAReport(t *testing.T) {
	t.Parallel()
	accuracy := func(l *validators.Limits) { l.Accuracy = &validators.AccuracyLimit{Regression: &validators.AtMost{}} }
	latency := func(l *validators.Limits) { l.Latency.Regression = &validators.AtMost{} }
	for name, c := range map[string]struct {
		environment string
		change      func(*validators.Limits)
		want        bool
	}{
		"accuracy":                             {"prod", accuracy, true},
		"latency":                              {"prod", latency, true},
		"nothing is compared":                  {"prod", func(*validators.Limits) {}, false},
		"accuracy, but not with what is there": {"prod", func(l *validators.Limits) { l.Accuracy = &validators.AccuracyLimit{} }, false},
		"nothing is there":                     {"", accuracy, false},
	} {
		v := Session{}
		v.Limits = validators.Limits{V: validators.LimitsVersion}
		v.next.environment, v.next.release = c.environment, digest.FromString("release")
		c.change(&v.Limits)
		got := destinationOf(v, run.Candidate{})
		if (got != nil) != c.want || c.want && (got.Environment != "prod" || got.Release["sha256"] != v.next.release.Encoded()) {
			t.Errorf("%s: got %+v, want one: %t", name, got, c.want)
		}
	}
}

// A regression is compared by limits that ask for it, on cases with labels.
func TestComparesAccuracy(t *testing.T) {
	t.Parallel()
	asked := &validators.AccuracyLimit{Regression: &validators.AtMost{}}
	for name, c := range map[string]struct {
		limit  *validators.AccuracyLimit
		labels string
		want   bool
	}{
		"as asked": {asked, "label", true}, "no accuracy": {nil, "label", false},
		"no regression": {&validators.AccuracyLimit{}, "label", false}, "no labels": {asked, "", false},
	} {
		v := Session{}
		v.Limits = validators.Limits{V: validators.LimitsVersion, Accuracy: c.limit}
		v.Cases.Set = &artifact.CaseSet{Labels: c.labels}
		if got := comparesAccuracy(v); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}
