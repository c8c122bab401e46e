package registry

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// ApprovalRule says how many approvals a promotion needs, and of whom. The zero rule asks for none.
type ApprovalRule struct {
	// Count is the number of different keys that must approve, of groups or not.
	Count  int             `json:"count,omitempty"`
	Groups []ApproverGroup `json:"groups,omitempty"`
	// Attested says which approvals count that the service signed for people. Nil: none.
	Attested *AttestedRule `json:"attested,omitempty"`
}

// ApproverGroup is a named set of approvers, of whom some must approve.
type ApproverGroup struct {
	Name  string   `json:"name"`
	Count int      `json:"count"`
	Keys  []string `json:"keys"` // as trust entries name them
}

// maxApprovals bounds how many approvals a rule can ask for.
const maxApprovals = 100

// Validate checks that the rule can be met, if all its keys are those of different people. Errors:
// CodeInvalid.
func (rule ApprovalRule) Validate() error {
	if rule.Count < 0 || rule.Count > maxApprovals {
		return Errorf(CodeInvalid, "approvals: count %d: want 1 to %d", rule.Count, maxApprovals)
	}
	sum := 0
	for i, g := range rule.Groups {
		if err := g.validate(rule.Groups[:i], rule.Attested.inGroup(g.Name)); err != nil {
			return err
		}
		sum += g.Count
	}
	if rule.Count < sum {
		return Errorf(CodeInvalid, "approvals: count %d is less than the %d that the groups ask for together", rule.Count, sum)
	}
	return rule.Attested.validate(rule)
}

// validate checks a group. attested is how many approvals of it can be those of people without keys.
func (g ApproverGroup) validate(earlier []ApproverGroup, attested int) error {
	if !namePattern.MatchString(g.Name) {
		return Errorf(CodeInvalid, "approvals: group %q: want a lower-case name", g.Name)
	}
	if able := len(g.Keys) + attested; g.Count < 1 || g.Count > able {
		return Errorf(CodeInvalid, "approvals: group %s asks for %s of %s: want 1 to %d",
			g.Name, Count(g.Count, "approval"), Count(able, "key"), able)
	}
	for i, key := range g.Keys {
		if key == "" || slices.Contains(g.Keys[:i], key) {
			return Errorf(CodeInvalid, "approvals: group %s: key %q is empty or listed twice", g.Name, key)
		}
		for _, o := range earlier {
			if slices.Contains(o.Keys, key) {
				return Errorf(CodeInvalid, "approvals: key %s is in the groups %s and %s: want each key in one group", key, o.Name, g.Name)
			}
		}
	}
	if slices.ContainsFunc(earlier, func(o ApproverGroup) bool { return o.Name == g.Name }) {
		return Errorf(CodeInvalid, "approvals: group %s is defined twice", g.Name)
	}
	return nil
}

// String describes the rule: "3 approvals, 1 of security".
func (rule ApprovalRule) String() string {
	text := Count(rule.Count, "approval")
	for _, g := range rule.Groups {
		text += fmt.Sprintf(", %d of %s", g.Count, g.Name)
	}
	return text
}

// group returns the first group that has one of the keys, or "". A key that is trusted under two
// paths, each in another group, so counts for one of them only.
func (rule ApprovalRule) group(keys []string) string {
	for _, g := range rule.Groups {
		if slices.ContainsFunc(g.Keys, func(key string) bool { return slices.Contains(keys, key) }) {
			return g.Name
		}
	}
	return ""
}

// approvers are the signers of approvals that stand for the policy's resource.
type approvers struct {
	names   []string       // as messages show them, in order
	groups  map[string]int // approvers by group
	bundles []Digest       // of all their approvals
	other   []string       // why other approvals for the resource do not count
	until   time.Time      // when the first of them expires; zero: never
}

// liftingApprovals lists the approvals whose accepted lines count for a promotion under this policy: of
// its resource, at its time. Those that a service attested are among them only if the rule says so.
func (p Policy) liftingApprovals(r Release, claims []Claim) []GivenApproval {
	lifts := func(g GivenApproval) bool {
		return g.State == ApprovalStands && (g.Person == nil || p.Approvals.Attested.Accepts)
	}
	return slices.DeleteFunc(p.GivenApprovals(r, claims), func(g GivenApproval) bool { return !lifts(g) })
}

// GivenApprovals lists all approvals for the policy's resource, with the states that they have under
// the policy. Without a resource there are none.
func (p Policy) GivenApprovals(r Release, claims []Claim) []GivenApproval {
	all := slices.DeleteFunc(Approvals(r, claims, p.Promotion.Now), func(g GivenApproval) bool {
		return p.Promotion.Resource == "" || g.ResourceURI != p.Promotion.Resource
	})
	for i, g := range all {
		all[i].State = p.judgeApproval(g, r, claims)
	}
	return all
}

// approvers counts every signer and every person once, however many approvals and bundles there are.
func (p Policy) approvers(r Release, claims []Claim) approvers {
	given := p.GivenApprovals(r, claims)
	a, h := approvers{groups: make(map[string]int)}, p.Approvals.hands(claims, false)
	seen, counted := make(map[string]bool), make(map[string]bool)
	var attested []GivenApproval
	for _, g := range given {
		switch {
		case g.State != ApprovalStands:
			continue
		case g.Person != nil:
			attested = append(attested, g)
			seen[g.voice()] = true
			continue
		}
		a.bundles = append(a.bundles, g.Bundle)
		a.until = earlier(a.until, g.ExpiresOn)
		switch voice := h.find(g.Signer); {
		case !counted[voice]:
			counted[voice], seen[g.Signer] = true, true
			a.names = append(a.names, g.by())
			a.groups[p.Approvals.group(g.Keys)]++
		case !seen[g.Signer]:
			seen[g.Signer] = true
			a.other = append(a.other, g.by()+" belongs to a person who also approved with another key; both count once")
		}
	}
	slices.SortFunc(attested, func(a, b GivenApproval) int { return strings.Compare(a.voice(), b.voice()) })
	a.countAttested(p.Approvals, h, counted, attested)
	for _, g := range given {
		if g.State != ApprovalStands && !seen[g.voice()] {
			seen[g.voice()] = true
			a.other = append(a.other, g.why())
		}
	}
	slices.Sort(a.names)
	slices.Sort(a.other)
	return a
}

// voice identifies who approves: the key, or the person.
func (g GivenApproval) voice() string {
	if g.Person != nil {
		return g.Person.key()
	}
	return g.Signer
}

// by names who approves: a person, or the signer by the file of its key if that is known.
func (g GivenApproval) by() string {
	if g.Person != nil {
		return PlainText(g.Person.String()) + " (according to the service)"
	}
	if len(g.Keys) > 0 {
		return PlainText(g.Keys[0])
	}
	return "key " + g.Signer
}

// why says why the approval does not count.
func (g GivenApproval) why() string {
	switch g.State {
	case ApprovalWithdrawn:
		return g.by() + " took its approval back"
	case ApprovalExpired:
		return fmt.Sprintf("that of %s expired on %s", g.by(), utc(g.ExpiresOn))
	case ApprovalByBuilder:
		if g.Person != nil {
			return g.by() + " published or signed the build, so it cannot approve"
		}
		return g.by() + " signed the build, so it cannot approve"
	case ApprovalForeign:
		return "that of " + g.by() + " names no event of this registry's history: it may be for another one of this name (mlpromote approve names one; " +
			"approvals of other tools need a registry: in environments.yaml that is not local)"
	case ApprovalLeft:
		return "that of " + g.by() + " is from before the environment was rolled back from this release"
	case ApprovalUnlisted:
		return "that of " + g.by() + " does not count: the environment does not list the person (approvals: attested:)"
	}
	return "that of " + g.by() + " does not count"
}

// CheckApprovals decides whether enough approvers agreed to a promotion to the policy's resource.
func (p Policy) CheckApprovals(r Release, claims []Claim) Requirement {
	req := Requirement{Name: requireApprovals, Subject: subjectRelease}
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
		missing = append(missing, fmt.Sprintf("%d of %s", n, Count(rule.Count, "approval")))
	}
	return missing
}

// howToApprove names the command that adds an approval.
func (p Policy) howToApprove(r Release) string {
	if p.Promotion.Resource == "" {
		return ": no resource is known for which approvals could count"
	}
	environment := path.Base(strings.TrimSuffix(p.Promotion.Resource, "/"+r.Model))
	return fmt.Sprintf(`: another approver runs mlpromote approve %s:%s --env %s --comment TEXT`, r.Model, r.Tag(), environment)
}
