package environments_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/environments"
)

func TestReports(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	const v1 = "version: 1\n"
	with := func(version, reports string) string {
		return version + "registry: local\nenvironments:\n  staging:\n  prod: {from: staging, reports: " + reports + "}\n" + trust
	}
	for name, c := range map[string]struct {
		text, want string
		rule       registry.ReportRule
		shape      bool // whether the schema accepts it
	}{
		"both":               {with(v1, "{max-age: 90d, verifiers: 2}"), "", registry.ReportRule{MaxAge: 90 * 24 * time.Hour, Verifiers: 2}, true},
		"cases":              {with(v1, "{cases: 300}"), "", registry.ReportRule{Cases: 300}, true},
		"cases below none":   {with(v1, "{cases: -1}"), "5:3 environment prod: reports: cases -1: want at least 1", registry.ReportRule{}, false},
		"no cases":           {with(v1, "{cases: 0}"), "5:42 0 asks for nothing: want at least 1, or no such key", registry.ReportRule{}, false},
		"one case":           {with(v1, "{cases: 1}"), "", registry.ReportRule{Cases: 1}, true},
		"no verifiers":       {with(v1, "{verifiers: 0}"), "5:46 0 asks for nothing: want at least 1, or no such key", registry.ReportRule{}, false},
		"no number of cases": {with(v1, "{cases: many}"), "5:42 found \"many\": want a whole number", registry.ReportRule{}, false},
		"hours":              {with(v1, "{max-age: 36h}"), "", registry.ReportRule{MaxAge: 36 * time.Hour}, true},
		"no unit":            {with(v1, "{max-age: 90}"), "5:44 want how old a report may be, such as 90d or 36h", registry.ReportRule{}, false},
		"negative":           {with(v1, "{max-age: -1d}"), "5:44 want how old a report may be, such as 90d or 36h", registry.ReportRule{}, false},
		"too many days":      {with(v1, "{max-age: 999999999999d}"), "5:44 want how old a report may be, such as 90d or 36h", registry.ReportRule{}, true},
		"seconds":            {with(v1, "{max-age: 5s}"), "5:3 environment prod: reports: max-age 5s: want at least a minute", registry.ReportRule{}, true},
		"fewer than one":     {with(v1, "{verifiers: -1}"), "5:3 environment prod: reports: verifiers -1: want 1 to 100", registry.ReportRule{}, false},
		"where builds go": {v1 + "registry: local\nenvironments:\n  staging: {reports: {verifiers: 2}}\n" + trust,
			"4:3 environment staging: reports has no effect without from, since builds write it directly", registry.ReportRule{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRule(t, c.text, c.want, c.rule, func(p registry.Policy) any { return p.Reports })
			if err := validate(t, schema, c.text); (err == nil) != c.shape {
				t.Errorf("by the schema: %v, want valid %t", err, c.shape)
			}
		})
	}
}

// wantRule wants a file to be refused with problems, or, if there are none, to give its second environment a rule.
func wantRule(t *testing.T, text, problemsOf string, rule any, of func(registry.Policy) any) {
	t.Helper()
	es, err := environments.Parse("environments.yaml", []byte(text))
	got := ""
	if err != nil {
		got = problems(t, err)
	} else if diff := cmp.Diff(rule, of(es.List[1].Policy())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(problemsOf, got); diff != "" {
		t.Errorf("%s\n%s", text, diff)
	}
}

func TestCoverage(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	const v1 = "version: 1\n"
	with := func(version, coverage string) string {
		return version + "registry: local\nenvironments:\n  staging:\n  prod: {from: staging, coverage: " + coverage + "}\n" + trust
	}
	for name, c := range map[string]struct {
		text, want string
		rule       registry.CoverageRule
		shape      bool // whether the schema accepts it
	}{
		"both":            {with(v1, "{node-types: [g6.xlarge, \"edge/*\"], witnesses: 2}"), "", registry.CoverageRule{NodeTypes: []string{"g6.xlarge", "edge/*"}, Witnesses: 2}, true},
		"all":             {with(v1, "{node-types: [\"*\"]}"), "", registry.CoverageRule{NodeTypes: []string{"*"}}, true},
		"no node type":    {with(v1, "{node-types: []}"), "5:48 want a list of node types, such as [g6.xlarge] or [\"*\"]", registry.CoverageRule{}, false},
		"no list":         {with(v1, "{node-types: all}"), "5:48 want a list of node types, such as [g6.xlarge] or [\"*\"]", registry.CoverageRule{}, false},
		"witnesses alone": {with(v1, "{witnesses: 2}"), "5:35 key \"node-types\" is missing", registry.CoverageRule{}, false},
		"no witnesses":    {with(v1, "{node-types: [a], witnesses: 0}"), "5:64 0 asks for nothing: want at least 1, or no such key", registry.CoverageRule{}, false},
		"no name": {with(v1, "{node-types: [\"../x\"]}"),
			"5:3 environment prod: coverage: node type \"../x\": want a name, or the beginning of names and \"*\"", registry.CoverageRule{}, false},
		"where builds go": {v1 + "registry: local\nenvironments:\n  staging: {coverage: {node-types: [a]}}\n" + trust,
			"4:3 environment staging: coverage has no effect without from, since builds write it directly", registry.CoverageRule{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRule(t, c.text, c.want, c.rule, func(p registry.Policy) any { return p.Coverage })
			if err := validate(t, schema, c.text); (err == nil) != c.shape {
				t.Errorf("by the schema: %v, want valid %t", err, c.shape)
			}
		})
	}
}
