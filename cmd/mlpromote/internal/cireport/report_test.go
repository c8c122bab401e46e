package cireport

import (
	"encoding/json"
	"encoding/xml"
	"regexp"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// hostile is what a model, an engine or a message may be called by whoever wrote the model.
const hostile = "a|b`c`<img src=x onerror=alert(1)>\n::error::x\r\n@team #1 [x](http://evil.example) $(id) %0A --> ]]> \x1b[31m www.evil.example"

// unmetReport is a report with everything in it, all names of which are hostile.
func unmetReport() Report {
	fail := evidence.Check{Trial: evidence.TrialCases, Output: hostile, Figure: "maxError", Value: 2, Limit: new(evidence.Figure(1)), Verdict: evidence.VerdictFail, Cases: 9}
	worst, margin := tightest(evidence.Checks{fail})
	return Report{
		Release: "staging/vision/digits:1.1.0@sha256:00", Model: "vision/digits", Version: "1.1.0", Destination: "prod", Current: "1.0.0",
		Requirements: []Requirement{
			{policy.Requirement{Name: "parity", Subject: "cpu/int8", Detail: hostile}, "", "mlpromote verify x"},
			{policy.Requirement{Name: "parity", Subject: "cpu/fp32", Detail: hostile}, "", "mlpromote verify x"},
			{policy.Requirement{Name: "signature", Subject: "release", Met: true}, "", ""},
		},
		Engines: []Engine{
			{Label: "cpu/fp32", Verdict: evidence.VerdictPass, LatencyVerdict: evidence.VerdictRecorded, Bytes: 10, Was: "sha256:11", WasBytes: 5,
				Built: &Built{Steps: 3, Cached: 1, Elapsed: 2 * time.Second, Because: []string{"source", "asset " + hostile, "a", "b", "c", "d"}}},
			{Label: "cpu/" + hostile, Verdict: evidence.VerdictFail, Reasons: []string{hostile}, Checks: evidence.Checks{fail}, Tightest: worst, Margin: margin},
			{Label: "gpu/fp16"},
		},
		Gone: []string{hostile}, LeftOut: []evidence.LeftOut{{Label: hostile, Code: registry.CodeUnavailable}}, Looser: []string{hostile}, Interface: []string{hostile},
		Nodes: []api.NodeChange{{Node: "node type " + hostile, From: hostile}}, Steps: &Steps{Count: 3, Cached: 1, Elapsed: 90 * time.Second}, Unknown: []string{hostile},
	}
}

// Names of others make no markup: no link, no mention, no HTML, no cell, no command of a CI system.
func TestHostileMarkdown(t *testing.T) {
	t.Parallel()
	r := unmetReport()
	text := Markdown(r)
	noMarkup(t, strings.TrimPrefix(text, marker(r)))
	if columns := strings.Count(text, "<!--"); columns != 1 {
		t.Errorf("%d comments in the text, want the marker alone", columns)
	}
	held := api.Promotion{Environment: hostile, From: hostile, Model: hostile, Version: hostile, Release: hostile}
	held.Decision.Requirements = []policy.Requirement{{Name: hostile, Subject: hostile, Detail: hostile, Met: true}}
	noMarkup(t, Decision(held, hostile))
	held.Decision.Requirements[0].Met = false
	noMarkup(t, Decision(held, hostile))
}

// noMarkup fails if a part of hostile is more than text in body.
func noMarkup(t *testing.T, body string) {
	t.Helper()
	for name, unwanted := range map[string]*regexp.Regexp{
		"HTML": regexp.MustCompile(`<[a-z!/]`), "a link": regexp.MustCompile(`\]\(`), "a URL": regexp.MustCompile(`https?://|www\.`), "a mention": regexp.MustCompile(`@team`),
		"an issue": regexp.MustCompile(`(^|\s)#1`), "a command of GitHub": regexp.MustCompile(`(?m)^::`), "an escape": regexp.MustCompile(`\x1b`), "a carriage return": regexp.MustCompile(`\r`),
	} {
		if found := unwanted.FindString(body); found != "" {
			t.Errorf("a hostile name makes %s: %q in\n%s", name, found, body)
		}
	}
	columns := 0
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		if n := strings.Count(line, "|"); columns != 0 && n != columns {
			t.Errorf("a row has %d bars and the one above it %d:\n%s", n, columns, line)
		} else {
			columns = n
		}
	}
}

// A decision says whether and why not, also where a hold refuses what the requirements allow.
func TestDecision(t *testing.T) {
	t.Parallel()
	met := policy.Requirement{Name: "signature", Subject: "release", Met: true}
	unmet := policy.Requirement{Name: policy.RequireParity, Subject: "cpu/int8", Detail: "there is no report"}
	for name, c := range map[string]struct {
		requirements []policy.Requirement
		refusal      string
		want         []string
	}{
		"unmet":           {[]policy.Requirement{met, unmet}, "refused", []string{"**may not be promoted to prod**: 1 requirement unmet", "| parity | unmet | cpu/int8 | there is no report | `mlpromote verify staging/m:1.0.0` |"}},
		"refused":         {[]policy.Requirement{met, {Name: policy.RequireParity, Subject: "cpu/int8", Detail: "it failed", Refused: true}}, "refused", []string{"1 requirement unmet", "| parity | **refused** | cpu/int8 | it failed |  |"}},
		"held":            {[]policy.Requirement{met}, "held: a fair", []string{"**may not be promoted to prod**\n", "\nheld: a fair\n", "All 1 requirement is met."}},
		"tried":           {[]policy.Requirement{met}, "", []string{"**may be promoted to prod**\n"}},
		"no requirements": {nil, "", []string{"**may not be promoted to prod**\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := api.Promotion{From: "staging", Environment: "prod", Model: "m", Version: "1.0.0", Release: "sha256:00"}
			p.Decision.Requirements = c.requirements
			text := Decision(p, c.refusal)
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("got\n%s\nwant %q in it", text, want)
				}
			}
		})
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	text := Markdown(unmetReport())
	for _, want := range []string{
		"**may not be promoted to prod**: 2 requirements unmet", "It has 1.0.0 now.", "| cpu/int8, cpu/fp32 |", "1 other requirement is met.", "| cpu/fp32 | pass |", "+100.0 %", "| gpu/fp16 | not verified |",
		"Limits that are looser than in 1.0.0", "Build: 3 steps, 1 of them from a cache; the others took 1m30s.",
		"| cpu/fp32 | 3 steps | 1 step | 2s | source, ", ", 1 more |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if first, second := strings.Index(text, "| cpu/a"), strings.Index(text, "| cpu/fp32 | pass"); first > second {
		t.Errorf("an engine that passed is above one that failed:\n%s", text)
	}
	if loose, other := strings.Index(text, "Limits that are looser"), strings.Index(text, "Changes that callers"); loose > other {
		t.Errorf("loosened limits are not first:\n%s", text)
	}
	r := unmetReport()
	r.Run = "https://gitlab.example/t/m/-/jobs/7"
	if text := Markdown(r); !strings.Contains(text, ", built in [this CI run]("+r.Run+")\n") {
		t.Errorf("the run is missing in\n%s", text)
	}
	r.RunClaimed = true
	if text := Markdown(r); !strings.Contains(text, ", built in [a CI run]("+r.Run+"), as the job claims\n") {
		t.Errorf("the claim is missing in\n%s", text)
	}
	r.Steps, r.Engines[0].Built = &Steps{Count: 3, Cached: 3}, &Built{Steps: 3, Cached: 3}
	r.Engines[1].Built = &Built{Steps: 2, Cached: 1, Elapsed: 12 * time.Millisecond}
	text = Markdown(r)
	for _, want := range []string{"Build: 3 steps, all from a cache.", " | 3 steps | 3 steps | - |", " | 2 steps | 1 step | less than 100ms |"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	allowed := Markdown(Report{Model: "m", Version: "1.0.0", Destination: "prod", Allowed: true})
	if !strings.Contains(allowed, "**may be promoted to prod**") || !strings.Contains(allowed, "It has no release yet.") {
		t.Errorf("an allowed promotion reads\n%s", allowed)
	}
}

// Each refusal leads to the page of its subject, in every format. An address that could end a link is shown in none.
func TestReportLinksPages(t *testing.T) {
	t.Parallel()
	const engine, release = "https://models.example/models/a/-/engines/sha256:11?environment=staging", "https://models.example/models/a/-/releases/sha256:00?environment=staging"
	r := unmetReport()
	r.Page, r.Requirements[0].Page, r.Requirements[1].Page, r.Engines[0].Page, r.Engines[1].Page = release, engine, "https://x.example/) [evil](http://y.example", engine, engine
	text := Markdown(r)
	for _, want := range []string{"[`" + r.Release + "`](" + release + ")", "| [cpu/int8](" + engine + "), cpu/fp32 |", "| [cpu/fp32](" + engine + ") | pass |"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "[evil](") {
		t.Errorf("an address made a link of its own:\n%s", text)
	}
	junit, err := JUnit(r)
	if err != nil || !strings.Contains(string(junit), "&#xA;"+engine+"<") {
		t.Errorf("JUnit without the page, error %v:\n%s", err, junit)
	}
	sarif, err := SARIF(r, Spec{}, "1")
	if err != nil || !strings.Contains(string(sarif), "("+engine+")") {
		t.Errorf("SARIF without the page, error %v:\n%s", err, sarif)
	}
	quality, err := CodeQuality(r, Spec{})
	if err != nil || !strings.Contains(string(quality), "("+engine+")") {
		t.Errorf("code quality without the page, error %v:\n%s", err, quality)
	}
}

// A comment has a limit, and whoever reads it learns that something is missing.
func TestLongMarkdown(t *testing.T) {
	t.Parallel()
	r := unmetReport()
	for range 3000 {
		r.Looser = append(r.Looser, "int8: output scores: max_error 2, was 1")
	}
	text := Markdown(r)
	if len(text) > MaxMarkdown+200 || !strings.Contains(text, "too long for a comment") {
		t.Errorf("a report with 3,000 lines has %d bytes, and ends %q", len(text), text[max(0, len(text)-100):])
	}
}

func TestJUnit(t *testing.T) {
	t.Parallel()
	text, err := JUnit(unmetReport())
	if err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal(text, &got); err != nil {
		t.Fatalf("not XML: %v in\n%s", err, text)
	}
	want := []junitSuite{{Name: "requirements of prod", Tests: 3, Failures: 2}, {Name: "cpu/fp32", Tests: 1}, {Tests: 2, Failures: 2}, {Name: "gpu/fp16", Tests: 1, Failures: 1}}
	for n, w := range want {
		if n >= len(got.Suites) || got.Suites[n].Tests != w.Tests || got.Suites[n].Failures != w.Failures || w.Name != "" && got.Suites[n].Name != w.Name {
			t.Fatalf("suite %d: got %+v, want %+v", n, got.Suites, w)
		}
	}
}

// Findings point to the variant of an engine, and to the limits, and keep their fingerprint when figures change.
func TestFindings(t *testing.T) {
	t.Parallel()
	spec := Spec{Path: "mlpromote.yaml"}
	if got := spec.line("limit", "cpu/int8"); got != 1 {
		t.Errorf("without a spec, line %d, want 1", got)
	}
	spec = ReadSpec("testdata/mlpromote.yaml")
	for subject, want := range map[string]int{"cpu/fp32": 4, "cpu/int8": 5, "cpu/none": 4, "release": 1} {
		if got := spec.line("limit", subject); got != want {
			t.Errorf("%s: line %d, want %d", subject, got, want)
		}
	}
	if got := spec.line("looser", "int8: x"); got != 7 {
		t.Errorf("limits: line %d, want 7", got)
	}
	r := unmetReport()
	text, err := CodeQuality(r, spec)
	if err != nil {
		t.Fatal(err)
	}
	before := fingerprints(t, text)
	r.Engines[1].Checks[0].Value = 3
	text, err = CodeQuality(r, spec)
	if err != nil {
		t.Fatal(err)
	}
	if after := fingerprints(t, text); len(after) != 5 || strings.Join(after, " ") != strings.Join(before, " ") {
		t.Errorf("fingerprints %v became %v with another figure", before, after)
	}
	sarif, err := SARIF(r, spec, "1.0.0")
	if err != nil || strings.Count(string(sarif), `"ruleId"`) != 5 || strings.Count(string(sarif), `"level": "error"`) != 3 {
		t.Errorf("SARIF (error %v):\n%s", err, sarif)
	}
}

func fingerprints(t *testing.T, text []byte) []string {
	t.Helper()
	var issues []struct {
		Fingerprint string `json:"fingerprint"`
	}
	if err := json.Unmarshal(text, &issues); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, i := range issues {
		all = append(all, i.Fingerprint)
	}
	return all
}

// Commands of a job are ten at most, what failed first, and a hostile name makes no other one.
func TestCommands(t *testing.T) {
	t.Parallel()
	r := unmetReport()
	for range 12 {
		r.Looser = append(r.Looser, "accuracy: "+hostile)
	}
	text := string(Commands(r, Spec{Path: "models/a,b:c%.yaml"}))
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(all) != maxCommands+1 || !regexp.MustCompile(`^\+\d+ more: `).MatchString(all[maxCommands]) {
		t.Fatalf("got %d lines, want ten commands and how many are left out:\n%s", len(all), text)
	}
	last := "error"
	for _, line := range all[:maxCommands] {
		found := regexp.MustCompile(`^::(error|warning) file=models/a%2Cb%3Ac%25\.yaml,line=1,title=[^:,]+::`).FindStringSubmatch(line)
		if found == nil || found[1] == "error" && last == "warning" {
			t.Errorf("got the command %q, want one at a line of the spec, errors first", line)
			continue
		}
		last = found[1]
		if rest := line[len(found[0]):]; strings.ContainsAny(rest, "\r\x1b") || strings.Contains(rest, "%0A::") {
			t.Errorf("got the text %q, want it in one line", rest)
		}
	}
}
