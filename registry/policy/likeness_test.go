package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// A failure and a later pass: whether the pass heals it, or the engine is promoted and kept from some nodes, or is not promoted.
func TestFailureOfAnotherMachine(t *testing.T) {
	t.Parallel()
	withRuntime := func(version string) func(*evidence.ParityReport) {
		return func(p *evidence.ParityReport) {
			p.Runtime.Version, p.Node.Runtimes = version, map[string]string{"onnxruntime": version}
		}
	}
	withFeatures := func(features ...string) func(*evidence.ParityReport) {
		return func(p *evidence.ParityReport) { p.Node.CPU.Features = features }
	}
	withGPU := func(arch, driver string) func(*evidence.ParityReport) {
		return func(p *evidence.ParityReport) {
			p.Node.Accelerators = []artifact.NodeAccelerator{{Vendor: "nvidia", Product: "NVIDIA-L4", Arch: arch, Driver: driver}}
		}
	}
	same := func(*evidence.ParityReport) {}
	const (
		heals   = "heals"
		some    = "kept from some nodes"
		refused = "refused"
	)
	for name, c := range map[string]struct {
		failed, passed func(*evidence.ParityReport)
		gpu            bool // the engine is for an accelerator
		want           string
	}{
		"the same machine":          {same, same, false, heals},
		"features in another order": {withFeatures("fma", "avx2"), withFeatures("avx2", "fma"), false, heals},
		"another runtime":           {withRuntime("1.30.0"), withRuntime("1.31.0"), false, some},
		"other features":            {withFeatures("avx2", "amx_int8"), withFeatures("avx2"), false, some},
		"another library": {same, func(p *evidence.ParityReport) {
			p.Runtime.Library = evidence.NewDigestSet(digest.FromString("another"))
		}, false, refused},
		"no library stated":     {func(p *evidence.ParityReport) { p.Runtime.Library = nil }, func(p *evidence.ParityReport) { p.Runtime.Library = nil }, false, refused},
		"no features stated":    {withFeatures(), withFeatures(), false, refused},
		"another model":         {same, func(p *evidence.ParityReport) { p.Node.CPU.Model = "second" }, false, refused},
		"an emulated processor": {same, func(p *evidence.ParityReport) { p.Node.Notes = []string{artifact.NoteEmulated} }, false, refused},
		"another driver":        {withGPU("sm_89", "580.1"), withGPU("sm_89", "590.1"), true, some},
		"another architecture":  {withGPU("sm_89", "580.1"), withGPU("sm_90", "580.1"), true, some},
		"the same accelerator":  {withGPU("sm_89", "580.1"), withGPU("sm_89", "580.1"), true, heals},
		"the same accelerator beside another processor": {withGPU("sm_89", "580.1"), func(p *evidence.ParityReport) {
			withGPU("sm_89", "580.1")(p)
			p.Node.CPU.Features = []string{"avx2", "amx_int8"}
		}, true, refused},
		"a driver not stated":                            {withGPU("sm_89", ""), withGPU("sm_89", ""), true, refused},
		"another driver, for an engine of the processor": {withGPU("sm_89", "580.1"), withGPU("sm_89", "590.1"), false, heals},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sample()
			if r.Engines = r.Engines[:1]; c.gpu {
				r.Engines[0].Target.Accelerator = &artifact.TargetAccelerator{Vendor: "nvidia"}
			}
			e := r.Engines[0]
			claims := append(without(enough(r), is(evidence.PredicateParity, e.Digest)),
				parity(r, e, 1, evidence.VerdictFail, c.failed), parity(r, e, 2, evidence.VerdictPass, c.passed))
			d := (policy.Policy{Require: policy.DefaultRequire()}).Check(r, claims)
			if d.Allowed() == (c.want == refused) || (len(d.Withheld) > 0) != (c.want == some) {
				t.Errorf("allowed %t, withheld %v, unmet %q; want %s", d.Allowed(), d.Withheld, unmet(d), c.want)
			}
			standing := policy.CheckEngineStanding(prodURI, r, e, claims, restriction.NoRestrictions())
			if bare := failing(standing.Unmet()); bare == (c.want == heals) {
				t.Errorf("on a node that states nothing: failing %t, want %s", bare, c.want)
			}
			for which, edit := range map[string]func(*evidence.ParityReport){"failed": c.failed, "passed": c.passed} {
				report := evidence.ParityReport{ReportHead: evidence.ReportHead{Node: sampleNode()}}
				edit(&report)
				if got, want := failing(standing.UnmetOn(report.Node)), c.want == refused || c.want == some && which == "failed"; got != want {
					t.Errorf("on a node like that which %s: failing %t, want %t", which, got, want)
				}
			}
		})
	}
}

func failing(unmet []policy.Requirement) bool {
	return slices.ContainsFunc(unmet, policy.Requirement.Failed)
}

// What a node does not state, it may have: it does not get an engine that failed with that.
func TestNodesThatDoNotSay(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Engines = r.Engines[:1]
	e := r.Engines[0]
	old := parity(r, e, 1, evidence.VerdictFail, nil)
	newer := parity(r, e, 2, evidence.VerdictPass, func(p *evidence.ParityReport) {
		p.Runtime.Version, p.Node.Runtimes = "1.31.0", map[string]string{"onnxruntime": "1.31.0"}
	})
	claims := append(without(enough(r), is(evidence.PredicateParity, e.Digest)), old, newer)
	standing := policy.CheckEngineStanding(prodURI, r, e, claims, restriction.NoRestrictions())
	for name, c := range map[string]struct {
		edit func(*artifact.Node)
		want string // in the reason; empty: it gets the engine
	}{
		"like the one that failed":                 {func(*artifact.Node) {}, "the node is like the machine of that report"},
		"with the other runtime":                   {func(n *artifact.Node) { n.Runtimes = map[string]string{"onnxruntime": "1.31.0"} }, ""},
		"with a third runtime":                     {func(n *artifact.Node) { n.Runtimes = map[string]string{"onnxruntime": "1.32.0"} }, ""},
		"without a runtime":                        {func(n *artifact.Node) { n.Runtimes = nil }, "it does not state runtimes.onnxruntime"},
		"without features":                         {func(n *artifact.Node) { n.CPU.Features = nil }, "it does not state cpu.features"},
		"with other features":                      {func(n *artifact.Node) { n.CPU.Features = []string{"avx2", "fma"} }, ""},
		"with some features, as labels have them":  {func(n *artifact.Node) { n.Source, n.CPU.Features = "labels", []string{"fma"} }, ""},
		"with its runtime spelled in short":        {func(n *artifact.Node) { n.Runtimes = map[string]string{"onnxruntime": "1.30"} }, "the node"},
		"another model with the same":              {func(n *artifact.Node) { n.CPU.Model = "second" }, "the node is like"},
		"another runtime, without features":        {func(n *artifact.Node) { n.CPU.Features, n.Runtimes = nil, map[string]string{"onnxruntime": "1.31.0"} }, ""},
		"with an accelerator that does not matter": {func(n *artifact.Node) { n.Accelerators = []artifact.NodeAccelerator{{Vendor: "nvidia", Product: "L4"}} }, "the node is like"},
	} {
		n := sampleNode()
		c.edit(&n)
		got := ""
		for _, req := range standing.UnmetOn(n) {
			if req.Failed() {
				got = req.Detail
			}
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	// Labels have a part of the features.
	failed := parity(r, e, 1, evidence.VerdictFail, func(p *evidence.ParityReport) { p.Node.CPU.Features = []string{"amx_int8", "avx2"} })
	inPart := policy.CheckEngineStanding(prodURI, r, e, append(without(claims, func(c evidence.Claim) bool { return c.Bundle == old.Bundle }), failed), restriction.NoRestrictions())
	for source, kept := range map[string]bool{"labels": true, artifact.SourceMachine: false} {
		n := sampleNode()
		n.Source, n.CPU.Features = source, []string{"avx2"}
		got := ""
		for _, req := range inPart.UnmetOn(n) {
			if req.Failed() {
				got = req.Detail
			}
		}
		if kept != strings.Contains(got, "it does not state cpu.features") || !kept && got != "" {
			t.Errorf("some of the features, from %s: got %q, want that it is kept: %t", source, got, kept)
		}
	}
	demands := policy.Policy{Require: policy.DefaultRequire()}
	d := demands.Check(r, claims)
	if len(d.Withheld) != 1 || d.Withheld[0].Report != old.Bundle ||
		!strings.Contains(d.Withheld[0].String(), "x86/fp32 is kept from nodes with cpu.features avx2, runtimes.onnxruntime 1.30.0, and nodes that do not state these") {
		t.Errorf("withheld is %v", d.Withheld)
	}
	if whole := policy.CheckStanding(prodURI, r, append(claims, vsa(r, 4, func(*evidence.VSA, *evidence.Claim) {})), restriction.NoRestrictions()); failing(whole.Unmet()) || len(whole.Withheld) != 1 {
		t.Errorf("the release: unmet %q, withheld %v; want it to stand, and to say which nodes do not get the engine", unmet(whole), whole.Withheld)
	}
	// The environment lists a node type like the one that failed.
	for _, types := range [][]string{{"box"}, {"*"}} {
		p := covering(policy.CoverageRule{NodeTypes: types}, typed("box"))
		if got := coverageOf(t, p.Check(r, claims)); got.Met || !got.Objects() || !slices.Contains(got.Evidence, old.Bundle) {
			t.Errorf("node-types %v: met %t, objects %t: %s", types, got.Met, got.Objects(), got.Detail)
		}
	}
	// A later failure where it passed leaves no pass.
	again := parity(r, e, 3, evidence.VerdictFail, func(p *evidence.ParityReport) {
		p.Runtime.Version, p.Node.Runtimes = "1.31.0", map[string]string{"onnxruntime": "1.31.0"}
	})
	if d := demands.Check(r, append(claims, again)); d.Allowed() || len(d.Withheld) > 0 {
		t.Errorf("it failed wherever it ran: allowed %t, withheld %v", d.Allowed(), d.Withheld)
	}
	// So does a failure of latency.
	slow := performance(r, e, 3, evidence.VerdictFail)
	if d := demands.Check(r, append(enough(r), slow)); d.Allowed() {
		t.Error("it is allowed where its only machine was too slow")
	}
}

// A report of another runtime shows nothing of a node type, and one of another driver or architecture neither.
func TestCoverageOfAccelerators(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Engines = r.Engines[:1]
	r.Engines[0].Target.Accelerator = &artifact.TargetAccelerator{Vendor: "nvidia"}
	gpu := func(arch, driver string) func(*artifact.Node) {
		return func(n *artifact.Node) {
			n.Accelerators = []artifact.NodeAccelerator{{Vendor: "nvidia", Product: "NVIDIA-L4", Arch: arch, Driver: driver}}
		}
	}
	claims := append(enough(r), parity(r, r.Engines[0], 2, evidence.VerdictPass, func(p *evidence.ParityReport) { gpu("sm_89", "580.1")(&p.Node) }))
	for name, c := range map[string]struct {
		of   func(*artifact.Node)
		want string // empty: shown
	}{
		"the same":             {gpu("sm_89", "580.1"), ""},
		"another driver":       {gpu("sm_89", "590.1"), `accelerator.driver is "580.1", and the type has "590.1"`},
		"no driver":            {gpu("sm_89", ""), `the type does not state accelerator.driver, which is "580.1" there`},
		"no architecture":      {gpu("", "580.1"), "the type does not state accelerator.arch"},
		"another architecture": {gpu("sm_90", "580.1"), "accelerator.arch is"},
	} {
		p := covering(policy.CoverageRule{NodeTypes: []string{"box"}}, typed("box", c.of))
		if got := coverageOf(t, p.Check(r, claims)); got.Met != (c.want == "") || !strings.Contains(got.Detail, c.want) {
			t.Errorf("%s: met %t: %s; want %q", name, got.Met, got.Detail, c.want)
		}
	}
}
