package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// approvers are the signers of approvals that stand for the policy's resource.
type approvers struct {
	names   []string          // as messages show them, in order
	groups  map[string]int    // approvers by group
	bundles []registry.Digest // of all their approvals
	other   []string          // why other approvals for the resource do not count
	until   time.Time         // when the first of them expires; zero: never
}

// liftingApprovals lists the approvals whose accepted lines count for a promotion under this policy: of
// its resource, at its time. Those that a service attested are among them only if the rule says so.
func (p Policy) liftingApprovals(r artifact.Release, claims []evidence.Claim) []evidence.GivenApproval {
	lifts := func(g evidence.GivenApproval) bool {
		return g.State == evidence.ApprovalStands && (g.Person == nil || p.Approvals.Attested.Accepts)
	}
	return slices.DeleteFunc(p.GivenApprovals(r, claims), func(g evidence.GivenApproval) bool { return !lifts(g) })
}

// GivenApprovals lists all approvals for the policy's resource, with the states that they have under
// the policy. Without a resource there are none.
func (p Policy) GivenApprovals(r artifact.Release, claims []evidence.Claim) []evidence.GivenApproval {
	all := slices.DeleteFunc(evidence.Approvals(r, claims, p.Promotion.Now), func(g evidence.GivenApproval) bool {
		return p.Promotion.Resource == "" || g.ResourceURI != p.Promotion.Resource
	})
	for i, g := range all {
		all[i].State = p.judgeApproval(g, r, claims)
	}
	return all
}

// approvers counts every signer and every person once, however many approvals and bundles there are.
func (p Policy) approvers(r artifact.Release, claims []evidence.Claim) approvers {
	given := p.GivenApprovals(r, claims)
	a, h := approvers{groups: make(map[string]int)}, p.Approvals.hands(claims, false)
	seen, counted := make(map[string]bool), make(map[string]bool)
	var attested []evidence.GivenApproval
	for _, g := range given {
		switch {
		case g.State != evidence.ApprovalStands:
			continue
		case g.Person != nil:
			attested = append(attested, g)
			seen[g.Voice()] = true
			continue
		}
		a.bundles = append(a.bundles, g.Bundle)
		a.until = registry.Earlier(a.until, g.ExpiresOn)
		switch voice := h.find(g.Signer); {
		case !counted[voice]:
			counted[voice], seen[g.Signer] = true, true
			a.names = append(a.names, g.By())
			a.groups[p.Approvals.group(g.Keys)]++
		case !seen[g.Signer]:
			seen[g.Signer] = true
			a.other = append(a.other, g.By()+" belongs to a person who also approved with another key; both count once")
		}
	}
	slices.SortFunc(attested, func(a, b evidence.GivenApproval) int { return strings.Compare(a.Voice(), b.Voice()) })
	a.countAttested(p.Approvals, h, counted, attested)
	for _, g := range given {
		if g.State != evidence.ApprovalStands && !seen[g.Voice()] {
			seen[g.Voice()] = true
			a.other = append(a.other, g.Why())
		}
	}
	slices.Sort(a.names)
	slices.Sort(a.other)
	return a
}

// CheckApprovals decides whether enough approvers agreed to a promotion to the policy's resource.
func (p Policy) CheckApprovals(r artifact.Release, claims []evidence.Claim) Requirement {
	req := Requirement{Name: RequireApprovals, Subject: subjectRelease}
	judgeApprovals(judging{policy: p, release: r, claims: claims}, &req)
	return req
}

func judgeApprovals(j judging, req *Requirement) {
	rule, a := j.policy.Approvals, j.policy.approvers(j.release, j.claims)
	req.Evidence, req.until = a.bundles, a.until
	missing := rule.missing(a)
	req.Met = rule.Count > 0 && len(missing) == 0
	var said []string
	if len(a.names) > 0 {
		said = append(said, "approved by "+strings.Join(a.names, ", "))
	}
	if !req.Met {
		said = append(said, "missing: "+strings.Join(missing, ", "))
		said = append(said, a.other...)
	}
	req.Detail = strings.Join(said, "; ")
	if !req.Met {
		req.Detail += j.policy.howToApprove(j.release)
	}
}

// missing lists what is missing of the rule.
func (rule ApprovalRule) missing(a approvers) []string {
	var missing []string
	for _, g := range rule.Groups {
		if n := g.Count - a.groups[g.Name]; n > 0 {
			missing = append(missing, fmt.Sprintf("%d of %s (%s)", n, g.Name, strings.Join(g.Keys, ", ")))
		}
	}
	if n := rule.Count - len(a.names); n > 0 {
		missing = append(missing, fmt.Sprintf("%d of %s", n, registry.Count(rule.Count, "approval")))
	}
	return missing
}

// howToApprove names the command that adds an approval.
func (p Policy) howToApprove(r artifact.Release) string {
	if p.Promotion.Resource == "" {
		return ": no resource is known for which approvals could count"
	}
	environment := path.Base(strings.TrimSuffix(p.Promotion.Resource, "/"+r.Model))
	return fmt.Sprintf(`: another approver runs mlpromote approve %s:%s --env %s --comment TEXT`, r.Model, r.Tag(), environment)
}

// judgeApproval says whether an approval that stands counts under the policy: not if the person is not listed, or the same hand built
// or published the release.
func (p Policy) judgeApproval(g evidence.GivenApproval, r artifact.Release, claims []evidence.Claim) evidence.ApprovalState {
	h := p.Approvals.hands(claims, false)
	built := p.built(h, r, claims)
	switch {
	case g.State != evidence.ApprovalStands:
		return g.State
	case g.Foreign():
		return evidence.ApprovalForeign
	case p.Promotion.Left > 0 && g.Recorded <= p.Promotion.Left:
		return evidence.ApprovalLeft
	case g.Person != nil && !p.Approvals.Attested.Lists(*g.Person):
		return evidence.ApprovalUnlisted
	case g.Person != nil && slices.ContainsFunc(p.Promotion.Publishers, g.Person.MayBe), built[h.find(g.Voice())]:
		return evidence.ApprovalByBuilder
	}
	return evidence.ApprovalStands
}

// countAttested adds the attested approvals to those by keys: first those that groups lack, and no more than
// the rule takes. A person who approved with a key too is not counted again: byKey are the hands that did.
func (a *approvers) countAttested(rule ApprovalRule, h hands, byKey map[string]bool, attested []evidence.GivenApproval) {
	taken, counted := 0, make(map[string]bool)
	for _, forGroups := range []bool{true, false} {
		for _, g := range attested {
			l, _ := rule.Attested.find(*g.Person)
			lacks := slices.ContainsFunc(rule.Groups, func(group ApproverGroup) bool {
				return group.Name == l.Group && a.groups[group.Name] < group.Count
			})
			hand := h.find(g.Person.Key())
			switch {
			case counted[hand] || forGroups && !lacks:
				continue
			case byKey[hand]:
				a.other = append(a.other, g.By()+" approved with a key too, which counts once")
			case taken == rule.Attested.Max:
				a.other = append(a.other, fmt.Sprintf("that of %s is one more than the %d attested that count", g.By(), taken))
			default:
				taken++
				a.names = append(a.names, g.By())
				a.groups[l.Group]++
				a.bundles = append(a.bundles, g.Bundle)
				a.until = registry.Earlier(a.until, g.ExpiresOn)
			}
			counted[hand] = true
		}
	}
}

// Approvals lists the approvals of a release for all resources, as [evidence.Approvals] does, and says of each
// attested one whether the environment that it is for lists the person.
func (es Environments) Approvals(r artifact.Release, claims []evidence.Claim, now time.Time) []evidence.GivenApproval {
	all := evidence.Approvals(r, claims, now)
	for i, g := range all {
		if g.Person == nil {
			continue
		}
		all[i].State = evidence.ApprovalUnlisted
		for _, e := range es.List {
			if es.ResourceURI(e.Name, r.Model) == g.ResourceURI {
				all[i].State = e.Policy().judgeApproval(g, r, claims)
			}
		}
	}
	return all
}
