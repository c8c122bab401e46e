package cireport

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// finding is one thing that somebody should look at.
type finding struct {
	rule    string // "unmet/parity", "limit", "looser", "interface"
	subject string // label of an engine, "release" or the place of a limit
	message string
	fails   bool   // it prevents the promotion or is a failed limit
	line    int    // of the spec, from 1
	page    string // of the subject; may be empty
}

// findings lists what failed, then what changed.
func findings(r Report, spec Spec) []finding {
	var all []finding
	add := func(fails bool, rule, subject, message, page string) {
		all = append(all, finding{rule, plain(subject), plain(message), fails, spec.line(rule, subject), plain(page)})
	}
	for _, req := range r.Unmet() {
		add(true, "unmet/"+req.Name, req.Subject, req.Name+" of "+req.Subject+": "+req.Detail, req.Page)
	}
	for _, e := range r.Engines {
		for _, c := range failed(e.Checks) {
			add(true, "limit", e.Label, e.Label+": "+checkText(c), e.Page)
		}
	}
	for _, line := range r.Looser {
		add(false, "looser", line, "looser than in "+r.Current+": "+line, r.Page)
	}
	for _, line := range r.Interface {
		add(false, "interface", line, "callers of "+r.Current+" notice: "+line, r.Page)
	}
	return all
}

func checkText(c evidence.Check) string {
	want := "at most"
	if c.AtLeast {
		want = "at least"
	}
	text := fmt.Sprintf("%s is %.4g: want %s %.4g (%s, %s)",
		checkName(c), float64(c.Value), want, float64(c.LimitValue()), c.Verdict, registry.Count(c.Cases, "case"))
	switch {
	case c.Identical > 0:
		text += "; " + validators.IdenticalText(c)
	case c.Low != nil && c.High != nil:
		text += fmt.Sprintf("; the cases prove %.4g to %.4g", float64(*c.Low), float64(*c.High))
	}
	return text
}

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitFailure `xml:"failure"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"` // "unmet" or "refused" of a requirement; "limit" of a limit or verdict
	Text    string `xml:",chardata"`
}

// JUnit is the report as tests: one for each requirement of the destination, and one for each limit of each engine. An
// engine without a report is a failure of its own.
func JUnit(r Report) ([]byte, error) {
	suites := junitSuites{}
	policy := junitSuite{Name: plain("requirements of " + r.Destination)}
	for _, req := range r.Requirements {
		kind := ""
		if !req.Met && !req.Skipped {
			kind = req.State()
		}
		policy.add(req.Subject, req.Name, kind, req.Detail, req.Page)
	}
	suites.Suites = append(suites.Suites, policy)
	for _, e := range r.Engines {
		engine := junitSuite{Name: plain(e.Label)}
		for _, c := range e.Checks {
			engine.add(e.Label, checkName(c), limitFails(c.Verdict == evidence.VerdictPass), checkText(c), e.Page)
		}
		engine.add(e.Label, "verdict", limitFails(e.Passed()), ui.Dash(strings.Join(e.Reasons, "; ")), e.Page)
		suites.Suites = append(suites.Suites, engine)
	}
	text, err := xml.MarshalIndent(suites, "", "  ")
	return append([]byte(xml.Header), append(text, '\n')...), err
}

// limitFails is the type of the failure of a limit; empty if it passes.
func limitFails(passes bool) string {
	if passes {
		return ""
	}
	return "limit"
}

// add adds a test, which fails if fails says of which type the failure is.
func (s *junitSuite) add(class, name, fails, detail, page string) {
	c := junitCase{Class: plain(class), Name: plain(name)}
	s.Tests++
	if fails != "" {
		s.Failures++
		c.Failure = &junitFailure{Message: plain(detail), Type: fails, Text: strings.TrimSpace(plain(detail) + "\n" + plain(page))}
	}
	s.Cases = append(s.Cases, c)
}

// SARIF is what failed and what changed as results at lines of the spec, in the format 2.1.0 of OASIS.
func SARIF(r Report, spec Spec, version string) ([]byte, error) {
	type message struct {
		Text string `json:"text"`
	}
	type region struct {
		StartLine int `json:"startLine"`
	}
	type artifact struct {
		URI string `json:"uri"`
	}
	type physical struct {
		Artifact artifact `json:"artifactLocation"`
		Region   region   `json:"region"`
	}
	type location struct {
		Physical physical `json:"physicalLocation"`
	}
	type result struct {
		Rule      string            `json:"ruleId"`
		Level     string            `json:"level"`
		Message   message           `json:"message"`
		Locations []location        `json:"locations"`
		Same      map[string]string `json:"partialFingerprints"`
	}
	type rule struct {
		ID string `json:"id"`
	}
	results, rules, known := []result{}, []rule{}, map[string]bool{}
	for _, f := range findings(r, spec) {
		level := "warning"
		if f.fails {
			level = "error"
		}
		at := []location{{physical{artifact{spec.Path}, region{f.line}}}}
		results = append(results, result{f.rule, level, message{f.text()}, at, map[string]string{"mlpromote/v1": f.fingerprint(r)}})
		if !known[f.rule] {
			known[f.rule], rules = true, append(rules, rule{f.rule})
		}
	}
	driver := map[string]any{"name": "mlpromote", "version": version, "informationUri": "https://mlpromote.dev", "rules": rules}
	return indented(map[string]any{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []any{map[string]any{"tool": map[string]any{"driver": driver}, "results": results}},
	})
}

// CodeQuality is the same as GitLab's code quality report, which it shows beside the lines of a change.
func CodeQuality(r Report, spec Spec) ([]byte, error) {
	type lines struct {
		Begin int `json:"begin"`
	}
	type location struct {
		Path  string `json:"path"`
		Lines lines  `json:"lines"`
	}
	type issue struct {
		Description string   `json:"description"`
		Check       string   `json:"check_name"`
		Fingerprint string   `json:"fingerprint"`
		Severity    string   `json:"severity"`
		Location    location `json:"location"`
	}
	issues := []issue{}
	for _, f := range findings(r, spec) {
		severity := "minor"
		if f.fails {
			severity = "major"
		}
		issues = append(issues, issue{f.text(), "mlpromote/" + f.rule, f.fingerprint(r), severity, location{spec.Path, lines{f.line}}})
	}
	return indented(issues)
}

// Annotations are links of a GitLab job to the page of the release and of each engine that did not pass.
func Annotations(r Report) ([]byte, error) {
	type link struct {
		Label string `json:"label"`
		URL   string `json:"url"`
	}
	type annotation struct {
		Link link `json:"external_link"`
	}
	all := []annotation{}
	add := func(label, page string) {
		if page != "" {
			all = append(all, annotation{link{plain(label), plain(page)}})
		}
	}
	add(r.Model+" "+r.Version, r.Page)
	for _, e := range r.Engines {
		if !e.Passed() {
			add(e.Label, e.Page)
		}
	}
	return indented(map[string][]annotation{"mlpromote": all})
}

// maxCommands is how many annotations GitHub shows of one kind and step.
// Source: https://docs.github.com/en/rest/checks/runs, and community discussion 26680 of GitHub.
const maxCommands = 10

// What a command of GitHub's log may not have in its text and in its properties.
// Source: src/Runner.Common/ActionCommand.cs of actions/runner.
var (
	commandText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	commandProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// Commands are the first ten findings as commands of a GitHub job, which shows them at lines of the spec. What failed comes before
// what changed. Requirements that are unmet are no finding in the spec: evidence can still come.
func Commands(r Report, spec Spec) []byte {
	all := slices.DeleteFunc(findings(r, spec), func(f finding) bool { return strings.HasPrefix(f.rule, "unmet/") })
	slices.SortStableFunc(all, func(a, b finding) int { return weight(a) - weight(b) })
	var text strings.Builder
	for _, f := range all[:min(maxCommands, len(all))] {
		kind := "warning"
		if f.fails {
			kind = "error"
		}
		file, title := commandProperty.Replace(spec.Path), commandProperty.Replace("mlpromote "+f.rule)
		fmt.Fprintf(&text, "::%s file=%s,line=%d,title=%s::%s\n", kind, file, f.line, title, commandText.Replace(f.text()))
	}
	if more := len(all) - maxCommands; more > 0 {
		fmt.Fprintf(&text, "+%d more: mlpromote ci report lists all\n", more)
	}
	return []byte(text.String())
}

// weight orders findings: what failed, limits that are looser, then the rest.
func weight(f finding) int {
	switch {
	case f.fails:
		return 0
	case f.rule == "looser":
		return 1
	}
	return 2
}

// text is the message with the page of its subject.
func (f finding) text() string {
	if f.page == "" {
		return f.message
	}
	return f.message + " (" + f.page + ")"
}

// fingerprint identifies a finding in later runs: by what it is about, and not by its figures.
func (f finding) fingerprint(r Report) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{r.Model, r.Destination, f.rule, f.subject, strings.SplitN(f.message, " is ", 2)[0]}, "\x00")))
	return hex.EncodeToString(sum[:])
}

func indented(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return append(text, '\n'), err
}
