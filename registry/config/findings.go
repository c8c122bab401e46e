package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Finding is something in a configuration that its operator should know.
type Finding struct {
	// Problem says that something cannot work. Otherwise the finding is a note.
	Problem bool   `json:"problem"`
	Text    string `json:"text"`
	Fix     string `json:"fix,omitempty"` // how to solve it
}

// Findings reports settings that are valid but cannot work, or take effect only in the future.
func (s Snapshot) Findings(now time.Time) []Finding {
	found := s.TrustFindings(now)
	for _, e := range s.Environments.List {
		if e.Protected() {
			found = append(found, s.environmentFindings(e)...)
		}
	}
	return append(append(found, s.PromoterFindings()...), s.subjectFindings()...)
}

// subjectFindings reports rules of access.yaml that match a CI job by a pattern for its sub.
func (s Snapshot) subjectFindings() []Finding {
	var found []Finding
	for _, p := range s.Access.SubjectPatterns() {
		two := ""
		if strings.HasPrefix(p.Pattern, "repo:") {
			two = ", and GitHub writes it in two forms, repo:OWNER/NAME:... and repo:OWNER@ID/NAME@ID:..., of which a pattern matches one"
		}
		found = append(found, Finding{Text: fmt.Sprintf("%s: rule %d of %s matches sub by the pattern %q: a sub has names, which can pass to others, "+
			"and what the owner of a repository puts there%s; match these claims in its place: %s",
			AccessFile, p.Rule, p.Issuer, p.Pattern, two, strings.Join(p.Claims, ", "))})
	}
	return found
}

// TrustFindings reports the entries of the trust list that are valid but do not work, or only in the
// future.
func (s Snapshot) TrustFindings(now time.Time) []Finding {
	found := s.keyFindings()
	for _, e := range s.Environments.Trust {
		found = append(found, futureFindings(e, now)...)
	}
	return found
}

// keyFindings checks each entry of the trust list on its own.
func (s Snapshot) keyFindings() []Finding {
	var found []Finding
	for i, e := range s.Environments.Trust {
		_, exists := s.keys[e.Key]
		switch {
		case e.Identity != nil && !s.verifiesIdentities():
			found = append(found, Finding{Text: fmt.Sprintf("%s has no effect: roots names no sigstore root that could vouch for it", e)})
		case e.Identity != nil:
		case !exists && !trusted(e): // its statements against a release must still count
			found = append(found, Finding{true, fmt.Sprintf("key %s is %s and its file is missing, so its statements cannot be verified", e.Key, e.State),
				"put the public key back"})
		case !exists:
			found = append(found, Finding{true, fmt.Sprintf("the file of key %s is missing, so the entry has no effect", e.Key),
				"put the public key there, or remove the entry"})
		}
		if len(e.NodeTypes) > 0 {
			found = append(found,
				Finding{Text: fmt.Sprintf("%s counts as verifier for failing reports alone: this version does not check the node types of passing ones", e)})
		}
		for _, resource := range e.Resources {
			if !s.namesEnvironment(resource) {
				found = append(found, Finding{true, fmt.Sprintf("resource %s of %s covers no environment", resource, e),
					"use " + s.resource("") + " or a resource below it"})
			}
		}
		if other, ok := s.otherState(i); ok {
			found = append(found, Finding{true, fmt.Sprintf("key %s is the same key as %s, but has another state", e.Key, other),
				"give all entries of a key the same state"})
		}
	}
	return found
}

// futureFindings reports a key whose state begins after now, which is probably a mistake.
func futureFindings(e trust.TrustEntry, now time.Time) []Finding {
	const layout = "2006-01-02T15:04:05Z"
	switch {
	case e.Window.From.After(now):
		return []Finding{{Text: fmt.Sprintf("%s is valid %s: what it signs before does not count", e, e.Window)}}
	case !e.Window.Until.IsZero() && !now.Before(e.Window.Until):
		return []Finding{{Text: fmt.Sprintf("%s was valid %s: what it signs now does not count", e, e.Window)}}
	case e.RetiredAt.After(now):
		return []Finding{{Text: fmt.Sprintf("key %s retires in the future, on %s: its signatures count until then", e.Key, e.RetiredAt.Format(layout))}}
	case e.RevokedAt.After(now):
		return []Finding{{Text: fmt.Sprintf("key %s is revoked from a time in the future, %s, but counts as revoked now",
			e.Key, e.RevokedAt.Format(layout))}}
	}
	return nil
}

// namesEnvironment reports whether a resource of the trust list covers an environment or is
// inside one.
func (s Snapshot) namesEnvironment(resource string) bool {
	e := trust.TrustEntry{Resources: []string{resource}}
	return slices.ContainsFunc(s.Environments.List, func(o policy.Environment) bool { return e.Reaches(s.resource(o.Name)) })
}

// resource is the URI of everything in an environment.
func (s Snapshot) resource(environment string) string {
	return strings.TrimSuffix("oci://"+s.Environments.Registry+"/"+environment, "/")
}

// otherState finds an earlier entry with the same key in another file and another state.
func (s Snapshot) otherState(i int) (string, bool) {
	e := s.Environments.Trust[i]
	for _, o := range s.Environments.Trust[:i] {
		if id := s.keys[e.Key].id; id != "" && s.keys[o.Key].id == id && o.EffectiveState() != e.EffectiveState() {
			return o.Key, true
		}
	}
	return "", false
}

// verifiesIdentities reports whether a root can vouch for identities.
func (s Snapshot) verifiesIdentities() bool {
	return slices.ContainsFunc(s.Environments.Roots, func(r trust.Root) bool { return r.Sigstore != "" })
}

// trusted reports whether new signatures of a key count.
func trusted(e trust.TrustEntry) bool { return e.EffectiveState() == evidence.KeyTrusted }

// environmentFindings reports requirements of an environment that no release can ever meet.
func (s Snapshot) environmentFindings(e policy.Environment) []Finding {
	var found []Finding
	resource := s.resource(e.Name)
	for _, role := range evidence.Roles() {
		why := neededFor(role, e.Require)
		if why != "" && len(s.signers(role, resource)) == 0 {
			found = append(found, Finding{true,
				fmt.Sprintf("nothing can be promoted to %s: %s, but no existing trusted key has the role %s for %s/", e.Name, why, role, resource),
				fmt.Sprintf("give a key the role %s for %s/ under trust:", role, resource)})
		}
	}
	found = append(found, s.approvalFindings(e)...)
	if able := len(s.signers(evidence.RoleApprover, resource)); len(e.BreakGlass) > 0 && able < 2 {
		found = append(found, Finding{false, fmt.Sprintf("%s can never be promoted to by break-glass: two approvers must agree, and %s can approve there",
			e.Name, registry.Count(able, "key")), ""})
	}
	builders, verifiers := s.signers(evidence.RoleBuilder, resource), s.signers(evidence.RoleVerifier, resource)
	if slices.Contains(e.Require, policy.RequireSeparateRoles) && len(builders) == 1 && slices.Equal(builders, verifiers) {
		found = append(found, Finding{true,
			fmt.Sprintf("nothing can be promoted to %s: it requires %s, but one key is the only builder and the only verifier",
				e.Name, policy.RequireSeparateRoles),
			"give the verifier its own key"})
	}
	return found
}

// approvalFindings reports a rule that the keys of an environment cannot meet, and one key in two groups.
func (s Snapshot) approvalFindings(e policy.Environment) []Finding {
	var found []Finding
	able := s.signers(evidence.RoleApprover, s.resource(e.Name))
	people, more := s.attestable(e)
	found = append(found, more...)
	if len(able)+people < e.Approvals.Count {
		who := registry.Count(len(able), "key")
		if people > 0 {
			who += " and " + registry.Count(people, "person", "people")
		}
		found = append(found, Finding{true, fmt.Sprintf("nothing can be promoted to %s: it requires %s, but %s can approve there", e.Name,
			registry.Count(e.Approvals.Count, "approval"), who),
			fmt.Sprintf("trust the keys of more people as %s for %s/, or ask for fewer approvals", evidence.RoleApprover, s.resource(e.Name))})
	}
	groups := make(map[string]string) // by identifier of a key
	for _, g := range e.Approvals.Groups {
		var members []string
		for _, key := range g.Keys {
			id := s.keys[key].id
			if other, ok := groups[id]; ok && id != "" {
				found = append(found, Finding{true, fmt.Sprintf("key %s of group %s in %s is also in group %s, under another name", key, g.Name, e.Name, other),
					"put each key in one group"})
				continue
			}
			groups[id] = g.Name
			if slices.Contains(able, cmp.Or(id, key)) {
				members = append(members, key)
			}
		}
		if people > 0 {
			members = append(members, peopleOf(e.Approvals.Attested, g.Name)...)
		}
		if len(members) < g.Count {
			found = append(found, Finding{true, fmt.Sprintf("nothing can be promoted to %s: group %s must give %s, but %s of it can approve", e.Name, g.Name,
				registry.Count(g.Count, "approval"), registry.Count(len(members), "key")), "add keys to the group"})
		}
	}
	return found
}

// attestable counts the people whose attested approvals can count in an environment, and reports a list
// that has no effect because no key of an attester is trusted there.
func (s Snapshot) attestable(e policy.Environment) (int, []Finding) {
	rule := e.Approvals.Attested
	switch {
	case rule == nil:
		return 0, nil
	case len(s.signers(evidence.RoleAttester, s.resource(e.Name))) == 0:
		return 0, []Finding{{true, fmt.Sprintf("approvals: attested: of %s has no effect: no existing trusted key has the role %s for %s/",
			e.Name, evidence.RoleAttester, s.resource(e.Name)),
			fmt.Sprintf("make a key for the service: mlpromote key generate --role %s, and trust it", evidence.RoleAttester)}}
	}
	return min(rule.Max, len(rule.People)), nil
}

// peopleOf names the people of a group, no more than may count.
func peopleOf(rule *policy.AttestedRule, group string) []string {
	var all []string
	for _, p := range rule.People {
		if p.Group == group && len(all) < rule.Max {
			all = append(all, p.String())
		}
	}
	return all
}

// neededFor says which requirement needs a role. It returns "" if none does.
func neededFor(role evidence.Role, require []string) string {
	if role == evidence.RolePromoter {
		return "a promoter must sign each promotion"
	}
	for _, requirement := range require {
		if by, ok := policy.RequirementRole(requirement); ok && by == role {
			return "it requires " + requirement
		}
	}
	return ""
}

// signers lists the keys that are trusted in a role for a resource or something below it: by
// identifier, or by path for keys without one.
func (s Snapshot) signers(role evidence.Role, resource string) []string {
	var all []string
	for _, e := range s.Environments.Trust {
		key, exists := s.keys[e.Key]
		if e.Identity != nil {
			key, exists = publicKey{id: e.String()}, s.verifiesIdentities()
		}
		if !exists || !trusted(e) || !slices.Contains(e.Grants(), role) || !e.Reaches(resource) {
			continue
		}
		name := key.id
		if name == "" {
			name = e.Key
		}
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// trustsIdentity reports whether some identity has a role for a resource. Which one signs is known only from its certificate.
func (s Snapshot) trustsIdentity(role evidence.Role, resource string) bool {
	return s.verifiesIdentities() && slices.ContainsFunc(s.Environments.Trust, func(e trust.TrustEntry) bool {
		return e.Identity != nil && trusted(e) && slices.Contains(e.Grants(), role) && e.Reaches(resource)
	})
}

// PromoterFindings checks that the key with which this process signs promotions is trusted as
// promoter for every protected environment. Without such a key it reports nothing.
func (s Snapshot) PromoterFindings() []Finding {
	var found []Finding
	for _, e := range s.Environments.List {
		resource := s.resource(e.Name)
		if s.promoterIdentity && e.Protected() && !s.trustsIdentity(evidence.RolePromoter, resource) {
			found = append(found, Finding{true, fmt.Sprintf("nothing can be promoted to %s: this process signs promotions as an identity, and no identity is trusted as promoter for %s/",
				e.Name, resource), "add an entry with identity: and roles: [promoter] to trust: in environments.yaml, and roots: with who vouches for it"})
		}
		if s.Promoter == "" || !e.Protected() || slices.Contains(s.signers(evidence.RolePromoter, resource), s.Promoter.Encoded()) {
			continue
		}
		file := s.promoterFile
		if file == "" {
			file = "FILE-OF-THE-PUBLIC-KEY"
		}
		found = append(found, Finding{true,
			fmt.Sprintf("nothing can be promoted to %s: this process signs promotions with key %s, which is not trusted as promoter for %s/",
				e.Name, s.Promoter.Encoded(), resource),
			fmt.Sprintf("add to trust: in environments.yaml the line   - {key: %s, roles: [promoter], resources: [%q]}", file, resource+"/")})
	}
	return found
}
