package readiness

import (
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

func (c *checklist) ofEngine(e artifact.Engine) {
	c.signed(e.Label(), e.Digest)
	made := c.cs.Of(evidence.PredicateProvenance, e.Digest)
	c.provenance(e, made)
	c.reproducible(e, made)
	c.calibrated(e, made)
	c.safe(e)
	parity := c.cs.Proofs(c.in.Release, e)
	pass, passed := newestOf(parity.Passes)
	c.parity(e, parity, pass, passed)
	if !passed {
		return
	}
	c.recorded(e, pass)
	c.worst(e, pass)
	c.accuracy(e, pass)
	c.latency(e)
	c.plainLoad(e, pass)
	c.consistency(e, pass)
	c.requiredNodes(e)
}

func newestOf(passes []evidence.Report) (newest evidence.Report, ok bool) {
	if len(passes) == 0 {
		return evidence.Report{}, false
	}
	return slices.MinFunc(passes, evidence.Report.CompareAge), true
}

// provenanceOf reads what provenance says an engine was made of.
type provenanceOf struct {
	BuildDefinition struct {
		InternalParameters struct {
			Calibration []registry.Digest `json:"calibration"`
		} `json:"internalParameters"`
		ResolvedDependencies []struct {
			Name   string             `json:"name"`
			Digest evidence.DigestSet `json:"digest"`
		} `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
}

func (c *checklist) provenance(e artifact.Engine, made []evidence.Claim) {
	item := ReadinessItem{Name: policy.ReadyProvenance, Subject: e.Label(), State: Missing, Detail: "no provenance of a trusted builder",
		Proof: bundles(made), Command: policy.CommandBuild}
	if len(made) > 0 {
		var said provenanceOf
		var lacks []string
		_ = registry.DecodeSigned(made[0].Statement.Predicate, &said) // what cannot be read names nothing
		for _, want := range []string{"source", "sources", "limits", "toolchain lock"} {
			named := func(name string) bool { return name == want }
			if want == "toolchain lock" { // or what takes its place
				named = func(name string) bool { return strings.HasPrefix(name, "toolchain ") }
			}
			if !slices.ContainsFunc(said.BuildDefinition.ResolvedDependencies, func(d struct {
				Name   string             `json:"name"`
				Digest evidence.DigestSet `json:"digest"`
			}) bool {
				return named(d.Name) && len(d.Digest) > 0
			}) {
				lacks = append(lacks, want)
			}
		}
		if item.State = state(len(lacks) == 0); len(lacks) == 0 {
			item.Detail = "it names the source, the data, the limits and the toolchain by digest"
		} else {
			item.Detail = "it does not name by digest: " + strings.Join(lacks, ", ")
		}
	}
	c.add(item)
}

func (c *checklist) reproducible(e artifact.Engine, made []evidence.Claim) {
	item := ReadinessItem{Name: policy.ReadyReproducible, Subject: e.Label(), State: Missing, Detail: "its steps were not run twice",
		Command: "mlpromote build --check-reproducible"}
	for _, claim := range made {
		if item.State == Failing { // the worst of several findings counts, as for a policy
			break
		}
		switch class := claim.Statement.Reproducible(); class {
		case evidence.ReproducibleBytes, evidence.ReproducibleSemantic:
			item.State, item.Detail, item.Proof = Ready, "two runs of each step gave the same: "+string(class), []registry.Digest{claim.Bundle}
		case evidence.ReproducibleNone:
			item.State, item.Detail, item.Proof = Failing, "two runs of a step differ", []registry.Digest{claim.Bundle}
		}
	}
	c.add(item)
}

// calibrated holds if no file of the calibration is one of the cases. A build refuses single cases that are in both.
func (c *checklist) calibrated(e artifact.Engine, made []evidence.Claim) {
	item := ReadinessItem{Name: policy.ReadyCalibration, Subject: e.Label(), State: NotApplicable, Detail: "it was made without calibration data"}
	for _, claim := range made {
		var said provenanceOf
		if registry.DecodeSigned(claim.Statement.Predicate, &said) != nil {
			item.State, item.Detail = Missing, "its provenance does not say what it was calibrated with"
			break
		}
		if len(said.BuildDefinition.InternalParameters.Calibration) == 0 {
			continue
		}
		item.State, item.Proof = Ready, said.BuildDefinition.InternalParameters.Calibration
		item.Detail = "no file of the calibration is one of the cases, and a build refuses single cases that are in both"
		for _, d := range said.BuildDefinition.ResolvedDependencies {
			if strings.HasPrefix(d.Name, "cases ") && slices.Contains(said.BuildDefinition.InternalParameters.Calibration, d.Digest.SHA256()) {
				item.State, item.Detail = Failing, "it was calibrated with "+registry.PlainText(d.Name)
			}
		}
		break
	}
	c.add(item)
}

// safe is about code in an engine: formats that run code when they are loaded are refused when they are pushed.
func (c *checklist) safe(e artifact.Engine) {
	item := ReadinessItem{Name: policy.ReadySafe, Subject: e.Label(), State: Ready, Proof: []registry.Digest{e.Digest},
		Detail: "its files were looked at when it was pushed: none runs code when it is loaded"}
	switch {
	case len(e.Operators) > 0:
		item.Detail = fmt.Sprintf("it carries %s of operators, native code that the policy lists by digest",
			registry.Count(len(e.Operators), "library", "libraries"))
	case e.NativeCode:
		item.Detail = "it is native code of a compiler, and its manifest says so"
	}
	c.add(item)
}

func (c *checklist) parity(e artifact.Engine, found evidence.Findings, pass evidence.Report, passed bool) {
	item := ReadinessItem{Name: policy.ReadyParity, Subject: e.Label(), State: state(passed), Command: policy.CommandVerify + c.in.Ref}
	switch {
	case !passed && len(found.Against) > 0:
		against := found.Against[0]
		item.State, item.Detail, item.Proof = Failing, against.Failure(), []registry.Digest{against.Claim.Bundle}
		if item.Command = ""; against.Verdict != evidence.VerdictFail {
			item.State = Missing
		} else if against.OutputsDiffer() {
			item.Command = fmt.Sprintf("mlpromote bisect %s --engine %s", c.in.Ref, e.Label())
		}
	case passed:
		item.Proof = []registry.Digest{pass.Claim.Bundle}
		item.Detail = fmt.Sprintf("passed on %s with %s %s, %s", registry.PlainText(pass.Node.Kind()), registry.PlainText(pass.Runtime.Name),
			registry.PlainText(pass.Runtime.Version), registry.Count(pass.Cases.Ran, "case"))
		if len(found.Against) > 0 {
			item.Detail += "; kept from " + found.Against[0].Kept()
		}
	default:
		item.Detail = policy.NothingVerified
		if len(found.Stale) > 0 {
			item.Detail += ": " + registry.PlainText(found.Stale[0])
		}
	}
	c.add(item)
}

func (c *checklist) recorded(e artifact.Engine, pass evidence.Report) {
	item := ReadinessItem{Name: policy.ReadyRecorded, Subject: e.Label(), State: state(pass.Cases.Origin == artifact.OriginRecorded),
		Proof: []registry.Digest{pass.Cases.Digest.SHA256()}, Command: "mlpromote cases record"}
	item.Detail = fmt.Sprintf("%s, %s", registry.Count(pass.Cases.Count, "case"), registry.PlainText(pass.Cases.Origin))
	c.add(item)
}

func (c *checklist) worst(e artifact.Engine, pass evidence.Report) {
	item := ReadinessItem{Name: policy.ReadyWorst, Subject: e.Label(), State: Ready, Proof: []registry.Digest{pass.Claim.Bundle}, Detail: "no element differs"}
	for _, name := range registry.SortedKeys(pass.Outputs) {
		if w := pass.Outputs[name].Worst; w != nil {
			item.Detail = fmt.Sprintf("case %d, output %s: mlpromote replay shows it", w.Case, registry.PlainText(name))
			break
		}
	}
	if len(pass.Outputs) == 0 {
		item.State, item.Detail, item.Proof, item.Command = Missing, "the report has no figures of outputs", nil, policy.CommandVerify+c.in.Ref
	}
	c.add(item)
}

func (c *checklist) accuracy(e artifact.Engine, pass evidence.Report) {
	item := ReadinessItem{Name: policy.ReadyAccuracy, Subject: e.Label(), State: Missing, Command: "labels of the cases and limits.accuracy" + policy.InSpec}
	checks := pass.Checks.OfCases()
	bounded := slices.IndexFunc(checks, func(check evidence.Check) bool { return check.Output == "" && (check.Low != nil || check.High != nil) })
	switch {
	case pass.Accuracy == nil:
		item.Detail = "accuracy was not measured: the cases have no labels, or no output fits"
	case bounded < 0:
		item.Detail = fmt.Sprintf("%s is measured, and no limit on it has a bound that the cases prove", registry.PlainText(pass.Accuracy.Metric))
	default:
		item.State, item.Proof = Ready, []registry.Digest{pass.Claim.Bundle}
		item.Detail = fmt.Sprintf("%s of %s, with a bound at %.4g %% confidence", registry.PlainText(checks[bounded].Figure),
			registry.PlainText(pass.Accuracy.Metric), 100*float64(pass.Confidence))
	}
	c.add(item)
}

func (c *checklist) latency(e artifact.Engine) {
	item := ReadinessItem{Name: policy.ReadyLatency, Subject: e.Label(), State: Missing, Detail: "no performance report of a trusted verifier counts",
		Command: policy.CommandVerify + c.in.Ref}
	found := c.cs.Findings(evidence.PredicatePerformance, c.in.Release, e)
	if len(found.Against) > 0 {
		item.State, item.Detail, item.Proof = Failing, found.Against[0].Failure(), []registry.Digest{found.Against[0].Claim.Bundle}
	} else if pass, ok := newestOf(found.Passes); ok {
		item.State, item.Proof, item.Detail = Ready, []registry.Digest{pass.Claim.Bundle}, "measured on "+registry.PlainText(pass.Node.Kind())
		if pass.Verdict == evidence.VerdictRecorded {
			item.Detail += ", without a limit"
		}
	}
	c.add(item)
}

func (c *checklist) plainLoad(e artifact.Engine, pass evidence.Report) {
	item := ReadinessItem{Name: policy.ReadyPlainLoad, Subject: e.Label(), State: NotApplicable,
		Detail: "it has no load profile: it was loaded as its runtime does by itself"}
	if e.Load != nil {
		plain, ran := pass.Checks.Of(evidence.TrialPlainLoad)
		item.Proof, item.Command = []registry.Digest{pass.Claim.Bundle}, policy.CommandVerify+c.in.Ref
		switch {
		case !ran:
			item.State, item.Detail, item.Proof = Missing, "it was not run without its load profile", nil
		case plain.Verdict == evidence.VerdictPass:
			item.State, item.Detail = Ready, fmt.Sprintf("it passes without its load profile too, on %s", registry.Count(plain.Cases, "case"))
		default:
			item.State, item.Detail = Ready, "nodes must load it by its profile: without it, "+registry.PlainText(plain.Message)
		}
	}
	c.add(item)
}

func (c *checklist) consistency(e artifact.Engine, pass evidence.Report) {
	item := ReadinessItem{Name: policy.ReadyConsistency, Subject: e.Label(), State: Missing, Detail: "nothing was run beyond the cases",
		Command: policy.CommandVerify + c.in.Ref}
	var ran, open, none []string
	for _, check := range pass.Checks.Beyond() {
		what := check.Name()
		switch {
		case check.Trial == evidence.TrialPlainLoad: // an item of its own
		case check.NotForModel():
			none = append(none, check.Message)
		case check.Verdict == evidence.VerdictPass || check.Verdict == evidence.VerdictRecorded:
			ran = append(ran, what)
		default:
			open = append(open, what)
		}
	}
	if len(ran)+len(open) > 0 {
		item.State, item.Proof = state(len(open) == 0), []registry.Digest{pass.Claim.Bundle}
		item.Detail = "tried: " + registry.PlainText(strings.Join(ran, ", "))
		if len(open) > 0 {
			item.Detail = registry.PlainText("not tried: " + strings.Join(open, ", "))
		}
		if len(none) > 0 {
			item.Detail += "; " + registry.PlainText(strings.Join(none, "; "))
		}
	}
	c.add(item)
}

func (c *checklist) requiredNodes(e artifact.Engine) {
	if len(e.Target.RequiredNodeTypes) == 0 {
		c.add(ReadinessItem{Name: policy.ReadyRequiredNodes, Subject: e.Label(), State: NotApplicable, Detail: "its target requires no node type"})
		return
	}
	item := ReadinessItem{Name: policy.ReadyRequiredNodes, Subject: e.Label(), State: Missing, Command: policy.CommandVerify + c.in.Ref + " on machines of them",
		Detail: "required: " + registry.PlainText(strings.Join(e.Target.RequiredNodeTypes,
			", ")) + "; only the policy of an environment that follows says whether it was"}
	if d := c.in.Decision; d != nil {
		for _, req := range d.Requirements {
			if req.Name == policy.RequireParity && req.Subject == e.Label() {
				item.State, item.Detail, item.Proof = state(req.Met), "required: "+registry.PlainText(strings.Join(e.Target.RequiredNodeTypes, ", ")), req.Evidence
			}
		}
	}
	c.add(item)
}
