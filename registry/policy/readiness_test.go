package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/readiness"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// ready finds an item of a checklist.
func ready(t *testing.T, items []readiness.ReadinessItem, name, subject string) readiness.ReadinessItem {
	t.Helper()
	for _, item := range items {
		if item.Name == name && item.Subject == subject {
			return item
		}
	}
	t.Fatalf("no item %q of %s among %+v", name, subject, items)
	return readiness.ReadinessItem{}
}

// made is provenance of a builder that says what an engine was calibrated with, and which cases there are.
func made(subject registry.Digest, class evidence.Reproducibility, calibration []registry.Digest, cases registry.Digest) evidence.Claim {
	named := func(name string, d registry.Digest) map[string]any {
		return map[string]any{"name": name, "digest": evidence.NewDigestSet(d)}
	}
	some := digest.FromString("any")
	return claim(evidence.PredicateProvenance, subject, builder, evidence.RoleBuilder, map[string]any{
		"buildDefinition": map[string]any{
			"internalParameters": map[string]any{"calibration": calibration, "crossCheck": evidence.CrossCheck{By: "evaluator", Cases: 3, Of: 10}},
			"resolvedDependencies": []any{named("source", some), named("sources", some), named("limits", some), named("toolchain lock", some),
				named("cases x", cases)},
		},
		"runDetails": map[string]any{"metadata": map[string]any{evidence.ReproducibleField: class}},
	})
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	r := sample()
	quantized, subject := r.Engines[1], r.Engines[1].Label()
	cases, calibration := digest.FromString("cases"), digest.FromString("calibration")
	complete := func(edit func(*evidence.ParityReport)) []evidence.Claim {
		claims := []evidence.Claim{signature(r.Digest)}
		for _, e := range r.Engines {
			claims = append(claims, signature(e.Digest), made(e.Digest, evidence.ReproducibleBytes, []registry.Digest{calibration}, cases),
				parity(r, e, 1, evidence.VerdictPass, edit))
		}
		return claims
	}
	low := evidence.Figure(0.97)
	full := complete(func(p *evidence.ParityReport) {
		p.Outputs = map[string]evidence.OutputFigures{"y": {Worst: &evidence.Worst{Case: 4}}}
		p.Accuracy = &evidence.Accuracy{Metric: "top1"}
		p.Checks = evidence.Checks{{Trial: evidence.TrialCases, Figure: "accuracy", Verdict: evidence.VerdictPass, Low: &low},
			{Trial: evidence.TrialBatch, Size: "batch=2", Verdict: evidence.VerdictPass}}
	})
	for name, c := range map[string]struct {
		claims        []evidence.Claim
		item, subject string
		state         readiness.ReadinessState
		detail        string
	}{
		"built once":                {full, "built once", "release", readiness.Ready, "2 engines by digest"},
		"built by who is not known": {nil, "built once", "release", readiness.Missing, "no trusted builder"},
		"signed":                    {full, "signed", subject, readiness.Ready, "signed by a trusted builder"},
		"not signed":                {nil, "signed", subject, readiness.Missing, "no signature"},
		"cross-checked":             {full, "reference cross-checked", "release", readiness.Ready, "3 of 10 cases"},
		"not cross-checked":         {nil, "reference cross-checked", "release", readiness.Missing, "no trusted builder"},
		"no commit":                 {full, "provenance names a commit", "release", readiness.Missing, "no commit"},
		"provenance":                {full, "provenance complete", subject, readiness.Ready, "by digest"},
		"provenance that says nothing": {enough(r), "provenance complete", subject, readiness.Missing,
			"does not name by digest: source, sources, limits, toolchain lock"},
		"reproducible":  {full, "build reproducible", subject, readiness.Ready, "bytes"},
		"not run twice": {enough(r), "build reproducible", subject, readiness.Missing, "not run twice"},
		"differs": {append(enough(r), made(quantized.Digest, evidence.ReproducibleNone, nil, cases)), "build reproducible", subject,
			readiness.Failing, "differ"},
		"differs, and then does not": {append(enough(r), made(quantized.Digest, evidence.ReproducibleNone, nil, cases),
			made(quantized.Digest, evidence.ReproducibleBytes, nil, cases)), "build reproducible", subject, readiness.Failing, "differ"},
		"calibrated apart": {full, "calibrated apart from the cases", subject, readiness.Ready, "no file of the calibration"},
		"calibrated with a case": {[]evidence.Claim{made(quantized.Digest, "", []registry.Digest{cases}, cases)}, "calibrated apart from the cases",
			subject, readiness.Failing, "cases x"},
		"not calibrated": {[]evidence.Claim{made(quantized.Digest, "", nil, cases)}, "calibrated apart from the cases", subject,
			readiness.NotApplicable, "without calibration"},
		"parity":    {full, "parity on the target", subject, readiness.Ready, "10 cases"},
		"no parity": {nil, "parity on the target", subject, readiness.Missing, "no report"},
		"a failure": {append(enough(r), parity(r, quantized, 2, evidence.VerdictFail, nil)), "parity on the target", subject,
			readiness.Failing, `"fail"`},
		"worst case":  {full, "worst case known", subject, readiness.Ready, "case 4, output y"},
		"accuracy":    {full, "accuracy bounded", subject, readiness.Ready, "accuracy of top1"},
		"no accuracy": {enough(r), "accuracy bounded", subject, readiness.Missing, "not measured"},
		"latency": {append(enough(r), performance(r, quantized, 1, evidence.VerdictRecorded)), "latency measured", subject,
			readiness.Ready, "without a limit"},
		"no latency":               {full, "latency measured", subject, readiness.Missing, "no performance report"},
		"no load profile":          {full, "load profile against a plain load", subject, readiness.NotApplicable, "no load profile"},
		"batches":                  {full, "repeats, batches and shapes tried", subject, readiness.Ready, "batch batch=2"},
		"nothing beyond the cases": {enough(r), "repeats, batches and shapes tried", subject, readiness.Missing, "nothing was run"},
		"generated cases": {complete(func(p *evidence.ParityReport) { p.Cases.Origin = artifact.OriginGenerated }), "cases recorded",
			subject, readiness.Missing, "generated"},
		"in quarantine": {append(enough(r), quarantine(quantized.Digest)), "no quarantine and no restriction", "release", readiness.Failing,
			"in quarantine"},
		"nothing to roll back to":           {full, "rollback target", "release", readiness.Missing, "nothing to roll back to"},
		"approvals that no policy asks for": {full, "approved", "release", readiness.NotApplicable, "no environment"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			items := readiness.Readiness(readiness.ReadinessInput{Release: r, Ref: "staging/vision/digits:1.0.0", Source: "staging", Claims: c.claims})
			item := ready(t, items, c.item, c.subject)
			if item.State != c.state || !strings.Contains(item.Detail, c.detail) {
				t.Errorf("%s: %q, want %s with %q", item.State, item.Detail, c.state, c.detail)
			}
			if item.State == readiness.Ready && len(item.Proof) == 0 {
				t.Errorf("%s with the proof %v", item.State, item.Proof)
			}
			if len(item.Asked) > 0 {
				t.Errorf("asked by %q where no policy is known", item.Asked)
			}
		})
	}
}

// Only outputs that differ are worth a search for where they part, and what is undecided shows no failure.
func TestReadinessAdvisesWhatHelps(t *testing.T) {
	t.Parallel()
	r := sample()
	e := r.Engines[1]
	differs := func(p *evidence.ParityReport) {
		p.Outputs = map[string]evidence.OutputFigures{"y": {Worst: &evidence.Worst{Case: 4}}}
	}
	same := func(p *evidence.ParityReport) { p.Outputs = map[string]evidence.OutputFigures{"y": {}} }
	for name, c := range map[string]struct {
		claim   evidence.Claim
		state   readiness.ReadinessState
		command string
	}{
		"outputs that differ":            {parity(r, e, 2, evidence.VerdictFail, differs), readiness.Failing, "mlpromote bisect staging/vision/digits:1.0.0 --engine x86/int8"},
		"an identical engine that fails": {parity(r, e, 2, evidence.VerdictFail, same), readiness.Failing, ""},
		"an identical engine, undecided": {parity(r, e, 2, evidence.VerdictUndecided, same), readiness.Missing, ""},
		"too slow":                       {performance(r, e, 2, evidence.VerdictFail), readiness.Failing, ""},
	} {
		items := readiness.Readiness(readiness.ReadinessInput{Release: r, Ref: "staging/vision/digits:1.0.0", Source: "staging", Claims: append(enough(r), c.claim)})
		if item := ready(t, items, "parity on the target", e.Label()); item.State != c.state || item.Command != c.command {
			t.Errorf("%s: %s, %q; want %s, %q", name, item.State, item.Command, c.state, c.command)
		}
	}
}

// What the policy of the destination asks for stands beside the items, and what it refuses is not ready.
func TestReadinessNamesWhatThePolicyAsks(t *testing.T) {
	t.Parallel()
	r := sample()
	claims := enough(r)
	demands := strictest()
	demands.Require = append(demands.Require, policy.RequireReproducibleBytes)
	decision := demands.Check(r, claims)
	head := digest.FromString("head")
	items := readiness.Readiness(readiness.ReadinessInput{Release: r, Ref: "staging/vision/digits:1.0.0", Source: "staging", Destination: "prod",
		Claims: claims, Decision: &decision, Head: head})
	subject := r.Engines[0].Label()
	for name, want := range map[string]struct {
		subject string
		state   readiness.ReadinessState
		asked   []string
	}{
		"signed":               {subject, readiness.Ready, []string{policy.RequireSignature}},
		"provenance complete":  {subject, readiness.Missing, []string{policy.RequireProvenance}},
		"parity on the target": {subject, readiness.Ready, []string{policy.RequireParity, policy.RequireRecordedCases}},
		"build reproducible":   {subject, readiness.Missing, []string{policy.RequireReproducibleBytes}},
		"latency measured":     {subject, readiness.Missing, nil},
		"rollback target":      {"release", readiness.Ready, nil},
	} {
		item := ready(t, items, name, want.subject)
		if item.State != want.state || !slices.Equal(item.Asked, want.asked) {
			t.Errorf("%s: %s, asked by %q; want %s, %q", name, item.State, item.Asked, want.state, want.asked)
		}
		if name == "build reproducible" && item.Refused == "" {
			t.Error("build reproducible: the policy refuses it, and the item does not say so")
		}
		if name == "rollback target" && !slices.Contains(item.Proof, head) {
			t.Errorf("rollback target: proof %q, want the head of prod", item.Proof)
		}
	}
	for _, item := range items {
		if !slices.Contains(readiness.ReadinessNames(), item.Name) {
			t.Errorf("item %q is not among the names", item.Name)
		}
		if item.State == readiness.Missing && item.Command == "" && item.Name != "rollback target" && item.Name != "classes and features named" {
			t.Errorf("%s of %s is missing, and no command supplies it", item.Name, item.Subject)
		}
	}
}

// What the policy refuses of one engine stands at that engine, and at items that are about all of them.
func TestReadinessOfOneEngineThatIsRefused(t *testing.T) {
	t.Parallel()
	r := sample()
	signed, unsigned := r.Engines[0], r.Engines[1]
	claims := append(without(enough(r), is(evidence.PredicateSign, unsigned.Digest)), quarantine(unsigned.Digest))
	decision := strictest().Check(r, claims)
	items := readiness.Readiness(readiness.ReadinessInput{Release: r, Source: "staging", Destination: "prod", Claims: claims, Decision: &decision})
	for _, c := range []struct {
		item, subject string
		refused       bool
	}{
		{"signed", signed.Label(), false},
		{"signed", unsigned.Label(), true},
		{"signed", "release", false},
		{"no quarantine and no restriction", "release", true},
	} {
		if item := ready(t, items, c.item, c.subject); (item.Refused != "") != c.refused || (item.State == readiness.Ready) == c.refused {
			t.Errorf("%s of %s: %s, refused %q; want refused %t", c.item, c.subject, item.State, item.Refused, c.refused)
		}
	}
}

// An engine is shown on the node types that its target requires if its parity report is from one of them.
func TestReadinessOfRequiredNodeTypes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		machine string // of the node type
		decided bool
		state   readiness.ReadinessState
	}{
		"a report of such a machine":    {"first", true, readiness.Ready},
		"a report of another machine":   {"second", true, readiness.Missing},
		"without a policy that says it": {"first", false, readiness.Missing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sample()
			r.Engines[0].Target.RequiredNodeTypes = []string{"icelake"}
			p := policy.Environment{Name: "prod", From: "staging", Require: policy.DefaultRequire()}.Policy()
			p.Promotion.Restrictions = restriction.NoRestrictions()
			p.Promotion.NodeTypes = policy.NewKnownNodeTypes([]registry.Named[artifact.Node]{
				typed("icelake", func(n *artifact.Node) { n.CPU.Model = c.machine })})
			in := readiness.ReadinessInput{Release: r, Source: "staging", Destination: "prod", Claims: enough(r)}
			if decision := p.Check(r, in.Claims); c.decided {
				in.Decision = &decision
			}
			items := readiness.Readiness(in)
			item := ready(t, items, "shown on the required node types", r.Engines[0].Label())
			if item.State != c.state || c.state == readiness.Ready && len(item.Proof) == 0 {
				t.Errorf("%s with the proof %v, want %s", item.State, item.Proof, c.state)
			}
			if other := ready(t, items, "shown on the required node types", r.Engines[1].Label()); other.State != readiness.NotApplicable {
				t.Errorf("an engine that requires none: %s", other.State)
			}
		})
	}
}

// A rollback returns to the newest other release that the environment had.
func TestReadinessOfRollback(t *testing.T) {
	t.Parallel()
	r := sample()
	head, before, earliest := digest.FromString("head"), digest.FromString("before"), digest.FromString("earliest")
	for name, c := range map[string]struct {
		head    registry.Digest
		earlier []registry.Digest
		want    registry.Digest
	}{
		"no head":                            {"", nil, ""},
		"another head":                       {head, []registry.Digest{before}, head},
		"it is the head":                     {r.Digest, []registry.Digest{before, earliest}, before},
		"it is the head, and was one before": {r.Digest, []registry.Digest{r.Digest, earliest}, earliest},
		"it is the head, and the only one":   {r.Digest, []registry.Digest{r.Digest}, ""},
		"no head, and there were others":     {"", []registry.Digest{before}, before},
	} {
		items := readiness.Readiness(readiness.ReadinessInput{Release: r, Source: "staging", Destination: "prod", Head: c.head, Earlier: c.earlier})
		item := ready(t, items, "rollback target", "release")
		if c.want == "" && item.State != readiness.Missing || c.want != "" && (item.State != readiness.Ready || !slices.Equal(item.Proof, []registry.Digest{c.want})) {
			t.Errorf("%s: %s with the proof %v, want %q", name, item.State, item.Proof, c.want)
		}
	}
}
