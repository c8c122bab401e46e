package registry

import (
	"cmp"
	"fmt"
	"strings"
)

// ReadinessState says how far an item of a checklist is. The zero ReadinessState is not known.
type ReadinessState string

// The states of an item.
const (
	Ready         ReadinessState = "ready"          // there is proof
	Missing       ReadinessState = "missing"        // there is none yet
	Failing       ReadinessState = "failing"        // there is proof of the opposite
	NotApplicable ReadinessState = "not-applicable" // it is about something that the release does not have
)

// ReadinessItem is a line of the checklist of a release.
type ReadinessItem struct {
	Name    string         `json:"name"`    // one of [ReadinessNames]
	Subject string         `json:"subject"` // "release", or the label of an engine
	State   ReadinessState `json:"state"`
	Detail  string         `json:"detail"`          // what was found, or what is missing
	Proof   []Digest       `json:"proof,omitempty"` // bundles of evidence, or manifests
	// Command supplies what is missing; empty if nothing is, or if no command alone does.
	Command string `json:"command,omitempty"`
	// Asked are the requirements of the destination's policy that are about it; empty if the policy does not ask.
	Asked []string `json:"asked,omitempty"`
	// Refused is what the policy says against it; empty if it does not ask, or is content.
	Refused string `json:"refused,omitempty"`
}

// ReadinessInput is what a checklist is made of.
type ReadinessInput struct {
	Release Release
	Ref     string // of the release, for commands
	// Source is the environment that has the release, and Destination the one that it goes to next; the
	// latter is empty if there is none, and then Decision is nil.
	Source, Destination string
	Claims              []Claim
	Decision            *Decision // of the destination's policy; nil if it is not known
	// Head is what the destination has now, and Earlier are the releases that it had before, newest first.
	Head    Digest
	Earlier []Digest
	// Named says whether classes or features have names; nil if the interface was not read.
	Named *bool
}

// The items of a checklist, in order: of the release, and of each engine.
const (
	readyBuiltOnce      = "built once"
	readySignature      = "signed"
	readyCrossCheck     = "reference cross-checked"
	readyOrigin         = "provenance names a commit"
	readyLabels         = "classes and features named"
	readyUnrestricted   = "no quarantine and no restriction"
	readyApprovals      = "approved"
	readyCoverage       = "node types covered"
	readyRollback       = "rollback target"
	readyProvenance     = "provenance complete"
	readyReproducible   = "build reproducible"
	readyCalibration    = "calibrated apart from the cases"
	readySafe           = "no unsafe format"
	readyParity         = "parity on the target"
	readyRecorded       = "cases recorded"
	readyWorst          = "worst case known"
	readyAccuracy       = "accuracy bounded"
	readyLatency        = "latency measured"
	readyPlainLoad      = "load profile against a plain load"
	readyConsistency    = "repeats, batches and shapes tried"
	readyRequiredNodes  = "shown on the required node types"
	commandVerify       = "mlpromote verify "
	commandBuild        = "mlpromote build"
	inSpec              = " in mlpromote.yaml, then mlpromote build and mlpromote verify"
	nothingVerified     = "no report of a trusted verifier counts"
	readinessSubjectAll = "release"
)

// checklist is a list in the making.
type checklist struct {
	in    ReadinessInput
	cs    counted
	items []ReadinessItem
}

func (c *checklist) add(item ReadinessItem) {
	if item.State == Ready || item.State == NotApplicable {
		item.Command = ""
	}
	c.items = append(c.items, item)
}

// bundles are the digests of claims.
func bundles(claims []Claim) []Digest {
	var all []Digest
	for _, c := range claims {
		all = append(all, c.Bundle)
	}
	return all
}

func state(ok bool) ReadinessState {
	if ok {
		return Ready
	}
	return Missing
}

func (c *checklist) ofRelease() {
	r := c.in.Release
	c.builtOnce()
	c.signed("release", r.Digest)
	c.crossChecked()
	c.origin()
	c.named()
	c.unrestricted()
	c.approved()
	c.covered()
	c.rollback()
}

// builtOnce holds if every engine has one provenance of a builder: the bytes that were built are those that are
// promoted, and their digest is the proof.
func (c *checklist) builtOnce() {
	item := ReadinessItem{Name: readyBuiltOnce, Subject: readinessSubjectAll, State: Ready, Command: commandBuild}
	for _, e := range c.in.Release.Engines {
		if len(c.cs.of(PredicateProvenance, e.Digest)) == 0 {
			item.State, item.Detail = Missing, fmt.Sprintf("no trusted builder says how %s was built", e.Label())
		}
		item.Proof = append(item.Proof, e.Digest)
	}
	if item.State == Ready {
		item.Detail = fmt.Sprintf("%s by digest, from one build to every environment", Count(len(c.in.Release.Engines), "engine"))
	}
	c.add(item)
}

func (c *checklist) signed(subject string, digest Digest) {
	claims := c.cs.of(PredicateSign, digest)
	item := ReadinessItem{Name: readySignature, Subject: subject, State: state(len(claims) > 0), Detail: "signed by a trusted builder",
		Proof: bundles(claims), Command: commandBuild}
	if len(claims) == 0 {
		item.Detail = "no signature of a trusted builder"
	}
	c.add(item)
}

func (c *checklist) crossChecked() {
	item := ReadinessItem{Name: readyCrossCheck, Subject: readinessSubjectAll, State: Missing, Command: commandBuild,
		Detail: "no trusted builder says who else computed the golden outputs"}
	for _, claim := range c.cs {
		check := claim.Statement.CrossCheck()
		if check == nil {
			continue
		}
		item.Detail, item.Proof, item.State = PlainText(check.String()), []Digest{claim.Bundle}, state(check.Cases > 0)
		if check.Worst != nil && check.Worst.Share > 1 && check.Accepted == "" {
			item.State = Failing
		}
		break
	}
	c.add(item)
}

func (c *checklist) origin() {
	item := ReadinessItem{Name: readyOrigin, Subject: readinessSubjectAll, State: Missing,
		Detail: "the provenance of the release names no commit", Command: commandBuild + " in a git repository that has the spec"}
	for _, claim := range c.cs.of(PredicateProvenance, c.in.Release.Digest) {
		from := claim.Statement.Origin()
		if from == nil {
			continue
		}
		item.Detail, item.Proof = PlainText(from.String()), []Digest{claim.Bundle}
		item.State = state(from.Git.Commit != "" && from.Git.State == GitClean)
	}
	c.add(item)
}

func (c *checklist) named() {
	item := ReadinessItem{Name: readyLabels, Subject: readinessSubjectAll, Proof: []Digest{c.in.Release.Interface}}
	switch named := c.in.Named; {
	case named == nil:
		item.State, item.Detail, item.Proof = Missing, "the interface could not be read", nil
	case *named:
		item.State, item.Detail = Ready, "the interface has the names of classes or features"
	default:
		item.State, item.Detail, item.Command = Missing, "the interface has no names of classes or features", "outputs.NAME.labels or inputs.NAME.features"+inSpec
	}
	c.add(item)
}

func (c *checklist) unrestricted() {
	item := ReadinessItem{Name: readyUnrestricted, Subject: readinessSubjectAll, State: Ready, Detail: "nothing of it is in quarantine"}
	for _, s := range c.in.Release.Subjects() {
		if claims := c.cs.quarantines(s.Digest); len(claims) > 0 {
			item.State, item.Detail, item.Proof = Failing, s.Name+" is in quarantine", bundles(claims)
		}
	}
	c.add(item)
}

// approved goes by what the policy says, which counts who may approve.
func (c *checklist) approved() {
	item := ReadinessItem{Name: readyApprovals, Subject: readinessSubjectAll, State: NotApplicable,
		Detail: "no environment follows whose policy asks for approvals"}
	claims := c.cs.of(PredicateApproval, c.in.Release.Digest)
	if d := c.in.Decision; d != nil {
		for _, req := range d.Requirements {
			if req.Name == requireApprovals {
				item.State, item.Detail, item.Proof = state(req.Met), req.Detail, req.Evidence
				item.Command = fmt.Sprintf("mlpromote approve %s --to %s", c.in.Ref, c.in.Destination)
			}
		}
	}
	if item.State == NotApplicable && len(claims) > 0 {
		item.State, item.Detail, item.Proof = Ready, Count(len(claims), "approval")+" of trusted approvers", bundles(claims)
	}
	c.add(item)
}

// covered goes by what the policy says, which knows the registered node types.
func (c *checklist) covered() {
	item := ReadinessItem{Name: readyCoverage, Subject: readinessSubjectAll, State: NotApplicable,
		Detail: "no environment follows whose policy names node types"}
	if d := c.in.Decision; d != nil {
		for _, req := range d.Requirements {
			if req.Name != requireCoverage {
				continue
			}
			if item.State == NotApplicable {
				item.State, item.Detail = Ready, ""
			}
			item.Detail = strings.TrimPrefix(item.Detail+"; "+req.Subject+": "+req.Detail, "; ")
			item.Proof = append(item.Proof, req.Evidence...)
			if !req.Met {
				item.State, item.Command = Missing, commandVerify+c.in.Ref+" on a machine of the node type"
			}
		}
	}
	c.add(item)
}

// rollback holds if the destination has a release to return to once this one is there.
func (c *checklist) rollback() {
	item := ReadinessItem{Name: readyRollback, Subject: readinessSubjectAll}
	where := cmp.Or(c.in.Destination, c.in.Source)
	target := c.in.Head
	if target == "" || target == c.in.Release.Digest {
		target = ""
		for _, d := range c.in.Earlier {
			if d != c.in.Release.Digest {
				target = d
				break
			}
		}
	}
	if target == "" {
		item.State, item.Detail = Missing, fmt.Sprintf("%s had no other release of this model: there is nothing to roll back to", where)
	} else {
		item.State, item.Detail, item.Proof = Ready, fmt.Sprintf("mlpromote rollback in %s returns to it", where), []Digest{target}
	}
	c.add(item)
}

// ReadinessNames are the names of all items: those of a release, and then those of each engine.
func ReadinessNames() []string {
	return []string{readyBuiltOnce, readySignature, readyCrossCheck, readyOrigin, readyLabels, readyUnrestricted, readyApprovals, readyCoverage,
		readyRollback,
		readyProvenance, readyReproducible, readyCalibration, readySafe, readyParity, readyRecorded, readyWorst, readyAccuracy, readyLatency, readyPlainLoad, readyConsistency, readyRequiredNodes}
}
