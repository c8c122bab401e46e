package readiness

import (
	"cmp"
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// ReadinessState is the state of an item of a checklist. The zero ReadinessState is not known.
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
	Name    string            `json:"name"`    // in [ReadinessNames]
	Subject string            `json:"subject"` // "release", or the label of an engine
	State   ReadinessState    `json:"state"`
	Detail  string            `json:"detail"`          // the proof, or the lack of it
	Proof   []registry.Digest `json:"proof,omitempty"` // bundles of evidence, or manifests
	// Command supplies the missing proof; empty if there is one, or if no command alone does.
	Command string `json:"command,omitempty"`
	// Asked are the requirements of the destination's policy that are about it; empty if the policy does not ask.
	Asked []string `json:"asked,omitempty"`
	// Refused is the reason why the policy refuses it; empty if it does not ask, or is content.
	Refused string `json:"refused,omitempty"`
}

// ReadinessInput has the facts for a checklist.
type ReadinessInput struct {
	Release artifact.Release
	Ref     string // of the release, for commands
	// Source is the environment that has the release, and Destination the one that it goes to next; the
	// latter is empty if there is none, and then Decision is nil.
	Source, Destination string
	Claims              []evidence.Claim
	Decision            *policy.Decision // of the destination's policy; nil if it is not known
	// Head is the present release of the destination, and Earlier are the releases that it had before, newest first.
	Head    registry.Digest
	Earlier []registry.Digest
	// Named is true if classes or features have names; nil if the interface was not read.
	Named *bool
}

// checklist is a list in the making.
type checklist struct {
	in    ReadinessInput
	cs    evidence.Counted
	items []ReadinessItem
}

func (c *checklist) add(item ReadinessItem) {
	if item.State == Ready || item.State == NotApplicable {
		item.Command = ""
	}
	c.items = append(c.items, item)
}

// bundles are the digests of claims.
func bundles(claims []evidence.Claim) []registry.Digest {
	var all []registry.Digest
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
	item := ReadinessItem{Name: policy.ReadyBuiltOnce, Subject: policy.ReadinessSubjectAll, State: Ready, Command: policy.CommandBuild}
	for _, e := range c.in.Release.Engines {
		if len(c.cs.Of(evidence.PredicateProvenance, e.Digest)) == 0 {
			item.State, item.Detail = Missing, fmt.Sprintf("no trusted builder says how %s was built", e.Label())
		}
		item.Proof = append(item.Proof, e.Digest)
	}
	if item.State == Ready {
		item.Detail = fmt.Sprintf("%s by digest, from one build to every environment", registry.Count(len(c.in.Release.Engines), "engine"))
	}
	c.add(item)
}

func (c *checklist) signed(subject string, digest registry.Digest) {
	claims := c.cs.Of(evidence.PredicateSign, digest)
	item := ReadinessItem{Name: policy.ReadySignature, Subject: subject, State: state(len(claims) > 0), Detail: "signed by a trusted builder",
		Proof: bundles(claims), Command: policy.CommandBuild}
	if len(claims) == 0 {
		item.Detail = "no signature of a trusted builder"
	}
	c.add(item)
}

func (c *checklist) crossChecked() {
	item := ReadinessItem{Name: policy.ReadyCrossCheck, Subject: policy.ReadinessSubjectAll, State: Missing, Command: policy.CommandBuild,
		Detail: "no trusted builder says who else computed the golden outputs"}
	for _, claim := range c.cs {
		check := claim.Statement.CrossCheck()
		if check == nil {
			continue
		}
		item.Detail, item.Proof, item.State = registry.PlainText(check.String()), []registry.Digest{claim.Bundle}, state(check.Cases > 0)
		if check.Worst != nil && check.Worst.Share > 1 && check.Accepted == "" {
			item.State = Failing
		}
		break
	}
	c.add(item)
}

func (c *checklist) origin() {
	item := ReadinessItem{Name: policy.ReadyOrigin, Subject: policy.ReadinessSubjectAll, State: Missing,
		Detail: "the provenance of the release names no commit", Command: policy.CommandBuild + " in a git repository that has the spec"}
	for _, claim := range c.cs.Of(evidence.PredicateProvenance, c.in.Release.Digest) {
		from := claim.Statement.Origin()
		if from == nil {
			continue
		}
		item.Detail, item.Proof = registry.PlainText(from.String()), []registry.Digest{claim.Bundle}
		item.State = state(from.Git.Commit != "" && from.Git.State == evidence.GitClean)
	}
	c.add(item)
}

func (c *checklist) named() {
	item := ReadinessItem{Name: policy.ReadyLabels, Subject: policy.ReadinessSubjectAll, Proof: []registry.Digest{c.in.Release.Interface}}
	switch named := c.in.Named; {
	case named == nil:
		item.State, item.Detail, item.Proof = Missing, "the interface could not be read", nil
	case *named:
		item.State, item.Detail = Ready, "the interface has the names of classes or features"
	default:
		item.State, item.Detail, item.Command = Missing, "the interface has no names of classes or features", "outputs.NAME.labels or inputs.NAME.features"+policy.InSpec
	}
	c.add(item)
}

func (c *checklist) unrestricted() {
	item := ReadinessItem{Name: policy.ReadyUnrestricted, Subject: policy.ReadinessSubjectAll, State: Ready, Detail: "nothing of it is in quarantine"}
	for _, s := range c.in.Release.Judged() {
		if claims := c.cs.Quarantines(s.Digest); len(claims) > 0 {
			item.State, item.Detail, item.Proof = Failing, s.Name+" is in quarantine", bundles(claims)
		}
	}
	c.add(item)
}

// approved goes by what the policy says, which counts who may approve.
func (c *checklist) approved() {
	item := ReadinessItem{Name: policy.ReadyApprovals, Subject: policy.ReadinessSubjectAll, State: NotApplicable,
		Detail: "no environment follows whose policy asks for approvals"}
	claims := c.cs.Of(evidence.PredicateApproval, c.in.Release.Digest)
	if d := c.in.Decision; d != nil {
		for _, req := range d.Requirements {
			if req.Name == policy.RequireApprovals {
				item.State, item.Detail, item.Proof = state(req.Met), req.Detail, req.Evidence
				item.Command = fmt.Sprintf("mlpromote approve %s --to %s", c.in.Ref, c.in.Destination)
			}
		}
	}
	if item.State == NotApplicable && len(claims) > 0 {
		item.State, item.Detail, item.Proof = Ready, registry.Count(len(claims), "approval")+" of trusted approvers", bundles(claims)
	}
	c.add(item)
}

// covered goes by what the policy says, which knows the registered node types.
func (c *checklist) covered() {
	item := ReadinessItem{Name: policy.ReadyCoverage, Subject: policy.ReadinessSubjectAll, State: NotApplicable,
		Detail: "no environment follows whose policy names node types"}
	if d := c.in.Decision; d != nil {
		for _, req := range d.Requirements {
			if req.Name != policy.RequireCoverage {
				continue
			}
			if item.State == NotApplicable {
				item.State, item.Detail = Ready, ""
			}
			item.Detail = strings.TrimPrefix(item.Detail+"; "+req.Subject+": "+req.Detail, "; ")
			item.Proof = append(item.Proof, req.Evidence...)
			if !req.Met {
				item.State, item.Command = Missing, policy.CommandVerify+c.in.Ref+" on a machine of the node type"
			}
		}
	}
	c.add(item)
}

// rollback holds if the destination has a release to return to once this one is there.
func (c *checklist) rollback() {
	item := ReadinessItem{Name: policy.ReadyRollback, Subject: policy.ReadinessSubjectAll}
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
		item.State, item.Detail, item.Proof = Ready, fmt.Sprintf("mlpromote rollback in %s returns to it", where), []registry.Digest{target}
	}
	c.add(item)
}

// ReadinessNames are the names of all items: first of the release, then of each engine.
func ReadinessNames() []string {
	return []string{policy.ReadyBuiltOnce, policy.ReadySignature, policy.ReadyCrossCheck, policy.ReadyOrigin, policy.ReadyLabels, policy.ReadyUnrestricted, policy.ReadyApprovals, policy.ReadyCoverage,
		policy.ReadyRollback,
		policy.ReadyProvenance, policy.ReadyReproducible, policy.ReadyCalibration, policy.ReadySafe, policy.ReadyParity, policy.ReadyRecorded, policy.ReadyWorst, policy.ReadyAccuracy, policy.ReadyLatency, policy.ReadyPlainLoad, policy.ReadyConsistency, policy.ReadyRequiredNodes}
}
