package environments_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/policy"
)

func TestReports(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	const v1 = "version: 1\n"
	with := func(version, reports string) string {
		return version + "registry: local\nenvironments:\n  staging:\n  prod: {from: staging, reports: " + reports + "}\n" + trustYAML
	}
	for name, c := range map[string]struct {
		text, want string
		rule       policy.ReportRule
		shape      bool // whether the schema accepts it
	}{
		"both":               {with(v1, "{max-age: 90d, verifiers: 2}"), "", policy.ReportRule{MaxAge: 90 * 24 * time.Hour, Verifiers: 2}, true},
		"cases":              {with(v1, "{cases: 300}"), "", policy.ReportRule{Cases: 300}, true},
		"cases below none":   {with(v1, "{cases: -1}"), "5:3 environment prod: reports: cases -1: want at least 1", policy.ReportRule{}, false},
		"no cases":           {with(v1, "{cases: 0}"), "5:42 0 asks for nothing: want at least 1, or no such key", policy.ReportRule{}, false},
		"one case":           {with(v1, "{cases: 1}"), "", policy.ReportRule{Cases: 1}, true},
		"rare differences":   {with(v1, "{rare: 500}"), "", policy.ReportRule{Rare: 500}, true},
		"none are rare":      {with(v1, "{rare: 1}"), "5:3 environment prod: reports: rare 1: want 2 to 100000", policy.ReportRule{}, false},
		"too rare":           {with(v1, "{rare: 100001}"), "5:3 environment prod: reports: rare 100001: want 2 to 100000", policy.ReportRule{}, false},
		"no verifiers":       {with(v1, "{verifiers: 0}"), "5:46 0 asks for nothing: want at least 1, or no such key", policy.ReportRule{}, false},
		"no number of cases": {with(v1, "{cases: many}"), "5:42 found \"many\": want a whole number", policy.ReportRule{}, false},
		"hours":              {with(v1, "{max-age: 36h}"), "", policy.ReportRule{MaxAge: 36 * time.Hour}, true},
		"no unit":            {with(v1, "{max-age: 90}"), "5:44 want how old a report may be, such as 90d or 36h", policy.ReportRule{}, false},
		"negative":           {with(v1, "{max-age: -1d}"), "5:44 want how old a report may be, such as 90d or 36h", policy.ReportRule{}, false},
		"too many days":      {with(v1, "{max-age: 999999999999d}"), "5:44 want how old a report may be, such as 90d or 36h", policy.ReportRule{}, true},
		"seconds":            {with(v1, "{max-age: 5s}"), "5:3 environment prod: reports: max-age 5s: want at least a minute", policy.ReportRule{}, true},
		"fewer than one":     {with(v1, "{verifiers: -1}"), "5:3 environment prod: reports: verifiers -1: want 1 to 100", policy.ReportRule{}, false},
		"where builds go": {v1 + "registry: local\nenvironments:\n  staging: {reports: {verifiers: 2}}\n" + trustYAML,
			"4:3 environment staging: reports has no effect without from, since builds write it directly", policy.ReportRule{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRule(t, c.text, c.want, c.rule, func(p policy.Policy) any { return p.Reports })
			if err := validate(t, schema, c.text); (err == nil) != c.shape {
				t.Errorf("by the schema: %v, want valid %t", err, c.shape)
			}
		})
	}
}

func TestServed(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	const usage = ": want bounds such as \">=26.10\" or \">=26.10 <27\", or one version"
	for name, c := range map[string]struct {
		text, want string
		rule       policy.ServedRule
		shape      bool
	}{
		"a server":          {"{by: triton}", "", policy.ServedRule{By: "triton"}, true},
		"from a version on": {`{by: triton, version: ">=26.10"}`, "", policy.ServedRule{By: "triton", Version: artifact.Constraint{Min: "26.10"}}, true},
		"two bounds":        {`{by: triton, version: ">= 26.10 < 27"}`, "", policy.ServedRule{By: "triton", Version: artifact.Constraint{Min: "26.10", Below: "27"}}, true},
		"one version":       {`{by: triton, version: "2.51.0"}`, "", policy.ServedRule{By: "triton", Version: artifact.Constraint{Exact: "2.51.0"}}, true},
		"no server":         {`{version: ">=1"}`, `5:33 key "by" is missing`, policy.ServedRule{}, false},
		"no name":           {"{by: Triton Server}", `5:3 environment prod: served: by "Triton Server": want the name of a server, such as triton`, policy.ServedRule{}, false},
		"a range in words":  {`{by: triton, version: "26.10 or newer"}`, `5:55 version "26.10 or newer"` + usage, policy.ServedRule{}, false},
		"no bound":          {`{by: triton, version: ""}`, `5:55 version ""` + usage, policy.ServedRule{}, false},
		"two lower bounds":  {`{by: triton, version: ">=1 >=2"}`, `5:55 version ">=1 >=2"` + usage, policy.ServedRule{}, false},
		"none between":      {`{by: triton, version: ">=3 <2"}`, `5:55 version ">=3 <2"` + usage, policy.ServedRule{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := "version: 1\nregistry: local\nenvironments:\n  staging:\n  prod: {from: staging, served: " + c.text + "}\n" + trustYAML
			wantRule(t, text, c.want, c.rule, func(p policy.Policy) any { return p.Served })
			if err := validate(t, schema, text); (err == nil) != c.shape {
				t.Errorf("by the schema: %v, want valid %t", err, c.shape)
			}
		})
	}
}

// wantRule wants a file to be refused with problems, or, if there are none, to give its second environment a rule.
func wantRule(t *testing.T, text, problemsOf string, rule any, of func(policy.Policy) any) {
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
		return version + "registry: local\nenvironments:\n  staging:\n  prod: {from: staging, coverage: " + coverage + "}\n" + trustYAML
	}
	for name, c := range map[string]struct {
		text, want string
		rule       policy.CoverageRule
		shape      bool // whether the schema accepts it
	}{
		"both":            {with(v1, "{node-types: [g6.xlarge, \"edge/*\"], witnesses: 2}"), "", policy.CoverageRule{NodeTypes: []string{"g6.xlarge", "edge/*"}, Witnesses: 2}, true},
		"all":             {with(v1, "{node-types: [\"*\"]}"), "", policy.CoverageRule{NodeTypes: []string{"*"}}, true},
		"no node type":    {with(v1, "{node-types: []}"), "5:48 want a list of node types, such as [g6.xlarge] or [\"*\"]", policy.CoverageRule{}, false},
		"no list":         {with(v1, "{node-types: all}"), "5:48 want a list of node types, such as [g6.xlarge] or [\"*\"]", policy.CoverageRule{}, false},
		"witnesses alone": {with(v1, "{witnesses: 2}"), "5:35 key \"node-types\" is missing", policy.CoverageRule{}, false},
		"no witnesses":    {with(v1, "{node-types: [a], witnesses: 0}"), "5:64 0 asks for nothing: want at least 1, or no such key", policy.CoverageRule{}, false},
		"no name": {with(v1, "{node-types: [\"../x\"]}"),
			"5:3 environment prod: coverage: node type \"../x\": want a name, or the beginning of names and \"*\"", policy.CoverageRule{}, false},
		"where builds go": {v1 + "registry: local\nenvironments:\n  staging: {coverage: {node-types: [a]}}\n" + trustYAML,
			"4:3 environment staging: coverage has no effect without from, since builds write it directly", policy.CoverageRule{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRule(t, c.text, c.want, c.rule, func(p policy.Policy) any { return p.Coverage })
			if err := validate(t, schema, c.text); (err == nil) != c.shape {
				t.Errorf("by the schema: %v, want valid %t", err, c.shape)
			}
		})
	}
}
