package policy_test

import (
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// covering is an environment that asks for witnesses on node types, and nothing else of reports.
func covering(rule policy.CoverageRule, types ...registry.Named[artifact.Node]) policy.Policy {
	p := policy.Environment{Name: "prod", From: "staging", Require: []string{policy.RequireSignature}, Coverage: rule}.Policy()
	p.Promotion.Restrictions = restriction.NoRestrictions()
	p.Promotion.NodeTypes = policy.NewKnownNodeTypes(types)
	return p
}

// typed is a node type of the machine that the reports of the fixture are from, changed by edits.
func typed(name string, edits ...func(*artifact.Node)) registry.Named[artifact.Node] {
	n := sampleNode()
	for _, edit := range edits {
		edit(&n)
	}
	return registry.Named[artifact.Node]{Name: name, Document: n}
}

// coverageOf returns what a decision requires for the node type box.
func coverageOf(t *testing.T, d policy.Decision) policy.Requirement {
	t.Helper()
	for _, req := range d.Requirements {
		if req.Name == "coverage" && req.Subject == "node type box" {
			return req
		}
	}
	t.Fatalf("no requirement about the node type: %+v", d.Requirements)
	return policy.Requirement{}
}

func TestCoverage(t *testing.T) {
	t.Parallel()
	r := sample()
	best := r.Engines[1] // int8: nodes get it
	r.Order = []registry.Digest{best.Digest, r.Engines[0].Digest}
	without := func(n int) []evidence.Claim { // signatures, and reports of the first engines
		var claims []evidence.Claim
		for _, c := range enough(r) {
			if c.Statement.PredicateType != evidence.PredicateParity || n > 0 && c.Subject == r.Engines[0].Digest {
				claims = append(claims, c)
			}
		}
		return claims
	}
	on := func(signer string, v evidence.Verdict, edits ...func(*evidence.ParityReport)) evidence.Claim {
		c := parity(r, best, 1, v, func(p *evidence.ParityReport) {
			for _, edit := range edits {
				edit(p)
			}
		})
		return edited(c, signer)
	}
	node := func(edit func(*artifact.Node)) func(*evidence.ParityReport) {
		return func(p *evidence.ParityReport) { edit(&p.Node) }
	}
	pass := evidence.VerdictPass
	box := typed("box")
	gpu := func(n *artifact.Node) {
		n.Accelerators = []artifact.NodeAccelerator{{Vendor: "nvidia", Product: "NVIDIA-L4", Arch: "sm_89"}}
	}
	for name, c := range map[string]struct {
		types     []registry.Named[artifact.Node]
		witnesses int
		claims    []evidence.Claim
		want      string // part of the detail
		met       bool
	}{
		"shown": {[]registry.Named[artifact.Node]{box}, 0, []evidence.Claim{on("v", pass)}, "it gets x86/int8, shown by 1 verifier on such a machine", true},
		"only another engine was shown": {[]registry.Named[artifact.Node]{box}, 0, without(1),
			"it gets x86/int8, shown by 0 verifiers on such a machine, and 1 must have found that it passes: run mlpromote verify on a machine of this type", false},
		"two keys": {[]registry.Named[artifact.Node]{box}, 2, []evidence.Claim{on("v", pass), on("w", pass)}, "shown by 2 verifiers", true},
		"one key twice": {[]registry.Named[artifact.Node]{box}, 2, []evidence.Claim{on("v", pass), on("v", pass, func(p *evidence.ParityReport) { p.FinishedOn = p.FinishedOn.Add(1) })},
			"shown by 1 verifier on such a machine, and 2 must have found that it passes: run mlpromote verify on a machine of this type, with the key of another verifier", false},
		"a builder's report": {[]registry.Named[artifact.Node]{box}, 0,
			[]evidence.Claim{claim(evidence.PredicateParity, best.Digest, "b", evidence.RoleBuilder, passingReport(r, best))}, "shown by 0 verifiers", false},
		"another processor": {[]registry.Named[artifact.Node]{box}, 0, []evidence.Claim{on("v", pass, node(func(n *artifact.Node) { n.CPU.Model = "second" }))},
			`a report was made on another machine: cpu.model is "second", and the type has "first"`, false},
		"a larger level":             {[]registry.Named[artifact.Node]{box}, 0, []evidence.Claim{on("v", pass, node(func(n *artifact.Node) { n.CPU.Level = "v4" }))}, `cpu.level is "v4"`, false},
		"a device beside it":         {[]registry.Named[artifact.Node]{box}, 0, []evidence.Claim{on("v", pass, node(gpu))}, "accelerators are", false},
		"a device that is not there": {[]registry.Named[artifact.Node]{typed("box", gpu)}, 0, []evidence.Claim{on("v", pass)}, "accelerators are", false},
		"a device without its architecture": {[]registry.Named[artifact.Node]{typed("box", gpu, func(n *artifact.Node) { n.Accelerators[0].Arch = "" })}, 0,
			[]evidence.Claim{on("v", pass, node(gpu))}, "shown by 1 verifier", true},
		"an emulated processor": {[]registry.Named[artifact.Node]{box}, 0,
			[]evidence.Claim{on("v", pass, node(func(n *artifact.Node) { n.Notes = []string{artifact.NoteEmulated} }))}, "its processor is emulated", false},
		"an emulated type": {[]registry.Named[artifact.Node]{typed("box", func(n *artifact.Node) { n.Notes = []string{artifact.NoteEmulated} })}, 0,
			[]evidence.Claim{on("v", pass, node(func(n *artifact.Node) { n.Notes = []string{artifact.NoteEmulated} }))}, "shown by 1 verifier", true},
		"other features": {[]registry.Named[artifact.Node]{typed("box", func(n *artifact.Node) { n.CPU.Features = []string{"avx2"} })}, 0,
			[]evidence.Claim{on("v", pass, node(func(n *artifact.Node) { n.CPU.Features = []string{"avx2", "avx512_vnni"} }))}, "cpu.features", false},
		"a type that does not state the features": {[]registry.Named[artifact.Node]{typed("box", func(n *artifact.Node) { n.CPU.Features = nil })}, 0,
			[]evidence.Claim{on("v", pass)}, `the type does not state cpu.features, which is "avx2" there`, false},
		"another runtime": {[]registry.Named[artifact.Node]{typed("box", func(n *artifact.Node) { n.Runtimes = map[string]string{"onnxruntime": "1.31.0"} })}, 0,
			[]evidence.Claim{on("v", pass)}, `runtimes.onnxruntime is "1.30.0", and the type has "1.31.0"`, false},
		"a type that says less": {[]registry.Named[artifact.Node]{typed("box", func(n *artifact.Node) { n.CPU.Model, n.CPU.Vendor = "", "" })},
			0, []evidence.Claim{on("v", pass)}, "shown by 1 verifier", true},
		"no engine": {[]registry.Named[artifact.Node]{typed("box", func(n *artifact.Node) { n.CPU.Level = "v2" })}, 0, []evidence.Claim{on("v", pass)},
			"it gets no engine (x86/int8: cpu.level: needs v3, has v2; x86/fp32: cpu.level: needs v3, has v2): add a target that it meets to mlpromote.yaml, build and verify", false},
		"a type without a runtime": {[]registry.Named[artifact.Node]{typed("box", func(n *artifact.Node) { n.Runtimes = nil })},
			0, []evidence.Claim{on("v", pass)}, "it gets no engine (x86/int8: runtimes.onnxruntime", false},
		"a failure of the engine":    {[]registry.Named[artifact.Node]{box}, 0, []evidence.Claim{on("v", pass), on("w", evidence.VerdictFail)}, "it gets x86/fp32, shown by 0 verifiers", false},
		"a quarantine of the engine": {[]registry.Named[artifact.Node]{box}, 0, []evidence.Claim{on("v", pass), quarantine(best.Digest)}, "it gets x86/fp32, shown by 0 verifiers", false},
		"a failure, and a pass with another runtime": {[]registry.Named[artifact.Node]{box}, 0, []evidence.Claim{
			on("v", pass),
			on("v", evidence.VerdictFail, func(p *evidence.ParityReport) { p.FinishedOn = p.FinishedOn.Add(time.Minute) }),
			on("v", pass, func(p *evidence.ParityReport) {
				p.FinishedOn, p.Runtime.Version = p.FinishedOn.Add(2*time.Minute), "1.31.0"
				p.Node.Runtimes = map[string]string{"onnxruntime": "1.31.0"}
			}),
		}, `it does not get x86/int8: the parity verdict is "fail", on a machine that it is or may be like, and no later report of such a machine passed`, false},
		"a failure that such a machine healed": {[]registry.Named[artifact.Node]{box}, 0, []evidence.Claim{
			on("v", evidence.VerdictFail),
			on("v", pass, func(p *evidence.ParityReport) { p.FinishedOn = p.FinishedOn.Add(time.Minute) }),
		}, "shown by 1 verifier", true},
		"the type is gone": {nil, 0, []evidence.Claim{on("v", pass)},
			"no such node type is registered: run mlpromote node describe on such a machine, and mlpromote node-type put NAME FILE", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := covering(policy.CoverageRule{NodeTypes: []string{"box"}, Witnesses: c.witnesses}, c.types...)
			got := coverageOf(t, p.Check(r, append(without(0), c.claims...)))
			if got.Met != c.met || !strings.Contains(got.Detail, c.want) {
				t.Errorf("got met %t: %s; want met %t with %q", got.Met, got.Detail, c.met, c.want)
			}
			if c.met && len(got.Evidence) < max(1, c.witnesses) {
				t.Errorf("it names %d reports, want those that count", len(got.Evidence))
			}
		})
	}
}

// passingReport is a passing report of the machine of the fixture.
func passingReport(r artifact.Release, e artifact.Engine) evidence.ParityReport {
	return evidence.ParityReport{ReportHead: head(r, e, 1, evidence.VerdictPass),
		Cases: evidence.CasesRun{Count: 10, Ran: 10, Origin: artifact.OriginRecorded}, Rules: evidence.ReportRules}
}

// Which node types a rule stands for, and what zero values and unknown tables give.
func TestCoverageSelects(t *testing.T) {
	t.Parallel()
	r := sample()
	rule := policy.CoverageRule{NodeTypes: []string{"edge/*", "edge/a", "box"}}
	d := covering(rule, typed("box"), typed("edge/a"), typed("edge/b"), typed("other")).Check(r, enough(r))
	var got []string
	for _, req := range d.Requirements {
		if req.Name == "coverage" {
			got = append(got, req.Subject)
		}
	}
	if want := "node type edge/a, node type edge/b, node type box"; strings.Join(got, ", ") != want {
		t.Errorf("judged are %v, want %s", got, want)
	}
	if got := unmet(covering(policy.CoverageRule{NodeTypes: []string{"edge/*"}}, typed("box")).Check(r, enough(r))); !strings.Contains(got,
		"coverage of node type edge/*: no such node type") {
		t.Errorf("a beginning that no name has: %q", got)
	}
	unknown := covering(rule)
	unknown.Promotion.NodeTypes = policy.KnownNodeTypes{}
	if got := unmet(unknown.Check(r, enough(r))); !strings.Contains(got, "coverage of release: which node types are registered is not known here") {
		t.Errorf("an unknown table: %q", got)
	}
	if got := unmet(covering(policy.CoverageRule{Witnesses: 2}, typed("box")).Check(r, enough(r))); !strings.Contains(got,
		"coverage of release: the policy names no node type") {
		t.Errorf("no name: %q", got)
	}
	if !covering(rule).NeedsNodeTypes(r) || covering(policy.CoverageRule{}).NeedsNodeTypes(r) {
		t.Error("a rule needs node types, and its absence does not")
	}
}

// What the policy asks of reports otherwise, it asks of witnesses too.
func TestWitnessesMeetTheRest(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Engines = r.Engines[:1]
	made := time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)
	claims := enough(r)
	for i := range claims {
		claims[i].Recorded, claims[i].RecordedAt = int64(i+1), made
	}
	for name, c := range map[string]struct {
		edit func(*policy.Policy)
		want string // empty: met
	}{
		"nothing more": {func(*policy.Policy) {}, ""},
		"young":        {func(p *policy.Policy) { p.Reports.MaxAge, p.Promotion.Now = time.Hour, made.Add(time.Hour-1) }, ""},
		"too old":      {func(p *policy.Policy) { p.Reports.MaxAge, p.Promotion.Now = time.Hour, made.Add(time.Hour) }, "a report is too old"},
		"ceilings": {func(p *policy.Policy) {
			p.Ceilings = policy.Ceilings{"fp32": {"snrDb": 60}}
		}, "its report lists no output"},
		"accuracy": {func(p *policy.Policy) {
			p.Accuracy = &policy.AccuracyRequirement{Metric: "top1", Min: new(evidence.Figure)}
		}, "its accuracy was not measured"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := covering(policy.CoverageRule{NodeTypes: []string{"*"}}, typed("box"))
			c.edit(&p)
			d := p.Check(r, claims)
			got := coverageOf(t, d)
			if got.Met != (c.want == "") || !strings.Contains(got.Detail, c.want) {
				t.Errorf("got met %t: %s; want %q", got.Met, got.Detail, c.want)
			}
			if p.Reports.MaxAge > 0 && got.Met && !d.Until.Equal(made.Add(time.Hour)) {
				t.Errorf("decided until %v, want when the report gets too old", d.Until)
			}
		})
	}
	generated := policy.CoverageRule{NodeTypes: []string{"box"}}
	p := covering(generated, typed("box"))
	p.Require = append(p.Require, policy.RequireRecordedCases)
	others := append(claims[:len(claims)-1:len(claims)-1], parity(r, r.Engines[0], 1,
		evidence.VerdictPass, func(r *evidence.ParityReport) { r.Cases.Origin = "generated" }))
	if got := coverageOf(t, p.Check(r, others)); got.Met || !strings.Contains(got.Detail, "the cases of a report are generated") {
		t.Errorf("generated cases: met %t: %s", got.Met, got.Detail)
	}
}

// What a target itself asks for: a pass on each node type that it names.
func TestRequiredNodeTypes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		types []registry.Named[artifact.Node]
		want  string // empty: met
	}{
		"shown": {[]registry.Named[artifact.Node]{typed("icelake")}, ""},
		"no such type": {[]registry.Named[artifact.Node]{typed("icelake-2")},
			"the target requires a pass on node type icelake, and none of this name is known here: run mlpromote node-type put icelake FILE"},
		"another machine": {[]registry.Named[artifact.Node]{typed("icelake", func(n *artifact.Node) { n.CPU.Model = "second" })},
			"the target requires a pass on node type icelake: run mlpromote verify on a machine of this type"},
		"no machine for it": {[]registry.Named[artifact.Node]{typed("icelake", func(n *artifact.Node) { n.CPU.Level = "v2" })},
			"the target requires a pass on node type icelake, which is no machine for it: cpu.level: needs v3, has v2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sample()
			r.Engines[0].Target.RequiredNodeTypes = []string{"icelake"}
			p := policy.Policy{Require: policy.DefaultRequire()}
			p.Promotion.NodeTypes = policy.NewKnownNodeTypes(c.types)
			if got := unmet(p.Check(r, enough(r))); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("unmet is %q, want %q", got, c.want)
			}
			if !p.NeedsNodeTypes(r) {
				t.Error("the decision does not say that it needs the node types")
			}
		})
	}
}

func TestCoverageRuleForm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule policy.CoverageRule
		want string // empty: valid
	}{
		"nothing":       {policy.CoverageRule{}, ""},
		"names":         {policy.CoverageRule{NodeTypes: []string{"g6.xlarge", "edge/*", "*"}, Witnesses: 2}, ""},
		"no name":       {policy.CoverageRule{Witnesses: 1}, "node-types is missing"},
		"a bad name":    {policy.CoverageRule{NodeTypes: []string{"../x"}}, `node type "../x"`},
		"a star inside": {policy.CoverageRule{NodeTypes: []string{"a*b"}}, `node type "a*b"`},
		"two stars":     {policy.CoverageRule{NodeTypes: []string{"a**"}}, `node type "a**"`},
		"empty":         {policy.CoverageRule{NodeTypes: []string{""}}, `node type ""`},
		"twice":         {policy.CoverageRule{NodeTypes: []string{"a", "a"}}, "listed twice"},
		"too many":      {policy.CoverageRule{NodeTypes: []string{"a"}, Witnesses: 101}, "witnesses 101"},
		"negative":      {policy.CoverageRule{NodeTypes: []string{"a"}, Witnesses: -1}, "witnesses -1"},
	} {
		err := policy.Policy{Require: policy.DefaultRequire(), Coverage: c.rule}.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
