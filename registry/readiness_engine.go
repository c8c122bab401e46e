package registry

import (
	"fmt"
	"slices"
	"strings"
)

func (c *checklist) ofEngine(e Engine) {
	c.signed(e.Label(), e.Digest)
	made := c.cs.of(PredicateProvenance, e.Digest)
	c.provenance(e, made)
	c.reproducible(e, made)
	c.calibrated(e, made)
	c.safe(e)
	parity := c.cs.proofs(c.in.Release, e)
	pass, passed := newestOf(parity.passes)
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

func newestOf(passes []report) (newest report, ok bool) {
	if len(passes) == 0 {
		return report{}, false
	}
	return slices.MinFunc(passes, report.compareAge), true
}

// provenanceOf reads what provenance says an engine was made of.
type provenanceOf struct {
	BuildDefinition struct {
		InternalParameters struct {
			Calibration []Digest `json:"calibration"`
		} `json:"internalParameters"`
		ResolvedDependencies []struct {
			Name   string    `json:"name"`
			Digest DigestSet `json:"digest"`
		} `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
}

func (c *checklist) provenance(e Engine, made []Claim) {
	item := ReadinessItem{Name: readyProvenance, Subject: e.Label(), State: Missing, Detail: "no provenance of a trusted builder",
		Proof: bundles(made), Command: commandBuild}
	if len(made) > 0 {
		var said provenanceOf
		var lacks []string
		_ = DecodeSigned(made[0].Statement.Predicate, &said) // what cannot be read names nothing
		for _, want := range []string{"source", "sources", "limits", "toolchain lock"} {
			named := func(name string) bool { return name == want }
			if want == "toolchain lock" { // or what takes its place
				named = func(name string) bool { return strings.HasPrefix(name, "toolchain ") }
			}
			if !slices.ContainsFunc(said.BuildDefinition.ResolvedDependencies, func(d struct {
				Name   string    `json:"name"`
				Digest DigestSet `json:"digest"`
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

func (c *checklist) reproducible(e Engine, made []Claim) {
	item := ReadinessItem{Name: readyReproducible, Subject: e.Label(), State: Missing, Detail: "its steps were not run twice",
		Command: "mlpromote build --check-reproducible"}
	for _, claim := range made {
		if item.State == Failing { // the worst of several findings counts, as for a policy
			break
		}
		switch class := claim.Statement.Reproducible(); class {
		case ReproducibleBytes, ReproducibleSemantic:
			item.State, item.Detail, item.Proof = Ready, "two runs of each step gave the same: "+string(class), []Digest{claim.Bundle}
		case ReproducibleNone:
			item.State, item.Detail, item.Proof = Failing, "two runs of a step differ", []Digest{claim.Bundle}
		}
	}
	c.add(item)
}

// calibrated holds if no file of the calibration is one of the cases. A build refuses single cases that are in both.
func (c *checklist) calibrated(e Engine, made []Claim) {
	item := ReadinessItem{Name: readyCalibration, Subject: e.Label(), State: NotApplicable, Detail: "it was made without calibration data"}
	for _, claim := range made {
		var said provenanceOf
		if DecodeSigned(claim.Statement.Predicate, &said) != nil {
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
				item.State, item.Detail = Failing, "it was calibrated with "+PlainText(d.Name)
			}
		}
		break
	}
	c.add(item)
}

// safe is about code in an engine: formats that run code when they are loaded are refused when they are pushed.
func (c *checklist) safe(e Engine) {
	item := ReadinessItem{Name: readySafe, Subject: e.Label(), State: Ready, Proof: []Digest{e.Digest},
		Detail: "its files were looked at when it was pushed: none runs code when it is loaded"}
	switch {
	case len(e.Operators) > 0:
		item.Detail = fmt.Sprintf("it carries %s of operators, native code that the policy lists by digest",
			Count(len(e.Operators), "library", "libraries"))
	case e.NativeCode:
		item.Detail = "it is native code of a compiler, and its manifest says so"
	}
	c.add(item)
}

func (c *checklist) parity(e Engine, found findings, pass report, passed bool) {
	item := ReadinessItem{Name: readyParity, Subject: e.Label(), State: state(passed), Command: commandVerify + c.in.Ref}
	switch {
	case !passed && len(found.against) > 0:
		against := found.against[0]
		item.State, item.Detail, item.Proof = Failing, against.failure(), []Digest{against.claim.Bundle}
		if item.Command = ""; against.Verdict != VerdictFail {
			item.State = Missing
		} else if against.outputsDiffer() {
			item.Command = fmt.Sprintf("mlpromote bisect %s --engine %s", c.in.Ref, e.Label())
		}
	case passed:
		item.Proof = []Digest{pass.claim.Bundle}
		item.Detail = fmt.Sprintf("passed on %s with %s %s, %s", PlainText(pass.Node.Kind()), PlainText(pass.Runtime.Name),
			PlainText(pass.Runtime.Version), Count(pass.Cases.Ran, "case"))
		if len(found.against) > 0 {
			item.Detail += "; kept from " + found.against[0].kept()
		}
	default:
		item.Detail = nothingVerified
		if len(found.stale) > 0 {
			item.Detail += ": " + PlainText(found.stale[0])
		}
	}
	c.add(item)
}

// outputsDiffer reports whether an output of the engine is another than that of the reference.
func (r report) outputsDiffer() bool {
	for _, o := range r.Outputs {
		if o.Worst != nil || o.NewNaN > 0 || o.NewInf > 0 {
			return true
		}
	}
	return false
}

func (c *checklist) recorded(e Engine, pass report) {
	item := ReadinessItem{Name: readyRecorded, Subject: e.Label(), State: state(pass.Cases.Origin == OriginRecorded),
		Proof: []Digest{pass.Cases.Digest.SHA256()}, Command: "mlpromote cases record"}
	item.Detail = fmt.Sprintf("%s, %s", Count(pass.Cases.Count, "case"), PlainText(pass.Cases.Origin))
	c.add(item)
}

func (c *checklist) worst(e Engine, pass report) {
	item := ReadinessItem{Name: readyWorst, Subject: e.Label(), State: Ready, Proof: []Digest{pass.claim.Bundle}, Detail: "no element differs"}
	for _, name := range sortedKeys(pass.Outputs) {
		if w := pass.Outputs[name].Worst; w != nil {
			item.Detail = fmt.Sprintf("case %d, output %s: mlpromote replay shows it", w.Case, PlainText(name))
			break
		}
	}
	if len(pass.Outputs) == 0 {
		item.State, item.Detail, item.Proof, item.Command = Missing, "the report has no figures of outputs", nil, commandVerify+c.in.Ref
	}
	c.add(item)
}

func (c *checklist) accuracy(e Engine, pass report) {
	item := ReadinessItem{Name: readyAccuracy, Subject: e.Label(), State: Missing, Command: "labels of the cases and limits.accuracy" + inSpec}
	bounded := slices.IndexFunc(pass.Checks, func(check Check) bool { return check.Output == "" && (check.Low != nil || check.High != nil) })
	switch {
	case pass.Accuracy == nil:
		item.Detail = "accuracy was not measured: the cases have no labels, or no output fits"
	case bounded < 0:
		item.Detail = fmt.Sprintf("%s is measured, and no limit on it has a bound that the cases prove", PlainText(pass.Accuracy.Metric))
	default:
		item.State, item.Proof = Ready, []Digest{pass.claim.Bundle}
		item.Detail = fmt.Sprintf("%s of %s, with a bound at %.4g %% confidence", PlainText(pass.Checks[bounded].Figure),
			PlainText(pass.Accuracy.Metric), 100*float64(pass.Confidence))
	}
	c.add(item)
}

func (c *checklist) latency(e Engine) {
	item := ReadinessItem{Name: readyLatency, Subject: e.Label(), State: Missing, Detail: "no performance report of a trusted verifier counts",
		Command: commandVerify + c.in.Ref}
	found := c.cs.findings(PredicatePerformance, c.in.Release, e)
	if len(found.against) > 0 {
		item.State, item.Detail, item.Proof = Failing, found.against[0].failure(), []Digest{found.against[0].claim.Bundle}
	} else if pass, ok := newestOf(found.passes); ok {
		item.State, item.Proof, item.Detail = Ready, []Digest{pass.claim.Bundle}, "measured on "+PlainText(pass.Node.Kind())
		if pass.Verdict == VerdictRecorded {
			item.Detail += ", without a limit"
		}
	}
	c.add(item)
}

func (c *checklist) plainLoad(e Engine, pass report) {
	item := ReadinessItem{Name: readyPlainLoad, Subject: e.Label(), State: NotApplicable,
		Detail: "it has no load profile: it was loaded as its runtime does by itself"}
	if e.Load != nil {
		plain := pass.PlainLoad
		item.Proof, item.Command = []Digest{pass.claim.Bundle}, commandVerify+c.in.Ref
		switch {
		case plain == nil:
			item.State, item.Detail, item.Proof = Missing, "it was not run without its load profile", nil
		case plain.Verdict == VerdictPass:
			item.State, item.Detail = Ready, fmt.Sprintf("it passes without its load profile too, on %s", Count(plain.Cases, "case"))
		default:
			item.State, item.Detail = Ready, "nodes must load it by its profile: without it, "+PlainText(plain.Message)
		}
	}
	c.add(item)
}

func (c *checklist) consistency(e Engine, pass report) {
	item := ReadinessItem{Name: readyConsistency, Subject: e.Label(), State: Missing, Detail: "nothing was run beyond the cases",
		Command: commandVerify + c.in.Ref}
	var ran, open, none []string
	for _, check := range pass.Consistency {
		what := strings.TrimSpace(string(check.Kind) + " " + check.What)
		switch {
		case check.NotForModel():
			none = append(none, check.Message)
		case check.Verdict == VerdictPass || check.Verdict == VerdictRecorded:
			ran = append(ran, what)
		default:
			open = append(open, what)
		}
	}
	if len(ran)+len(open) > 0 {
		item.State, item.Proof = state(len(open) == 0), []Digest{pass.claim.Bundle}
		item.Detail = "tried: " + PlainText(strings.Join(ran, ", "))
		if len(open) > 0 {
			item.Detail = PlainText("not tried: " + strings.Join(open, ", "))
		}
		if len(none) > 0 {
			item.Detail += "; " + PlainText(strings.Join(none, "; "))
		}
	}
	c.add(item)
}

func (c *checklist) requiredNodes(e Engine) {
	if len(e.Target.RequiredNodeTypes) == 0 {
		c.add(ReadinessItem{Name: readyRequiredNodes, Subject: e.Label(), State: NotApplicable, Detail: "its target requires no node type"})
		return
	}
	item := ReadinessItem{Name: readyRequiredNodes, Subject: e.Label(), State: Missing, Command: commandVerify + c.in.Ref + " on machines of them",
		Detail: "required: " + PlainText(strings.Join(e.Target.RequiredNodeTypes,
			", ")) + "; only the policy of an environment that follows says whether it was"}
	if d := c.in.Decision; d != nil {
		for _, req := range d.Requirements {
			if req.Name == RequireParity && req.Subject == e.Label() {
				item.State, item.Detail, item.Proof = state(req.Met), "required: "+PlainText(strings.Join(e.Target.RequiredNodeTypes, ", ")), req.Evidence
			}
		}
	}
	c.add(item)
}
