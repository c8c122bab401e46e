package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Changes lists in plain words what differs in after: what no longer holds, and what is new.
func Changes(before, after Snapshot) []string {
	was, is := before.facts(), after.facts()
	var changes []string
	for _, fact := range was {
		if !slices.Contains(is, fact) {
			changes = append(changes, "no longer: "+fact)
		}
	}
	for _, fact := range is {
		if !slices.Contains(was, fact) {
			changes = append(changes, "new: "+fact)
		}
	}
	for i, c := range changes { // paths of keys may have any character
		changes[i] = strings.Map(printable, c)
	}
	return changes
}

// printable replaces characters that a line cannot show.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return '?'
}

// facts lists what the configuration says, one fact per line.
func (s Snapshot) facts() []string {
	facts := []string{"the registry is called " + s.Environments.Registry, "builds go to " + s.Environments.First().Name}
	for _, e := range s.Environments.List {
		facts = append(facts, environmentFacts(e)...)
	}
	for _, e := range s.Environments.Trust {
		facts = append(facts, s.trustFacts(e)...)
	}
	if s.Promoter != "" {
		facts = append(facts, "promotions are signed by key "+s.Promoter.Encoded())
	}
	return append(facts, s.Access.Facts()...)
}

func environmentFacts(e policy.Environment) []string {
	facts := []string{fmt.Sprintf("environment %s takes pushes of builds", e.Name)}
	if e.Protected() {
		facts[0] = fmt.Sprintf("environment %s takes releases from %s", e.Name, e.From)
	}
	for _, requirement := range e.Require {
		facts = append(facts, fmt.Sprintf("environment %s requires %s", e.Name, requirement))
	}
	for _, library := range e.Operators {
		facts = append(facts, fmt.Sprintf("environment %s lets engines carry the operator library %s", e.Name, library))
	}
	facts = append(facts, approvalFacts(e)...)
	if !e.Served.IsZero() {
		facts = append(facts, fmt.Sprintf("environment %s requires passes through %s", e.Name, e.Served))
	}
	if !e.Coverage.IsZero() {
		facts = append(facts, fmt.Sprintf("environment %s requires %s", e.Name, e.Coverage))
	}
	for _, name := range e.BreakGlass {
		facts = append(facts, fmt.Sprintf("environment %s lets two approvers skip %s in an emergency", e.Name, name))
	}
	for _, f := range e.Freeze {
		facts = append(facts, fmt.Sprintf("environment %s takes no promotion in freeze %s", e.Name, f))
	}
	if e.External() {
		facts = append(facts, fmt.Sprintf("environment %s has its content on %s", e.Name, e.Registry))
	}
	return facts
}

// approvalFacts has a fact for the number of approvals, and one for each group.
func approvalFacts(e policy.Environment) []string {
	if e.Approvals.Count == 0 {
		return nil
	}
	facts := []string{fmt.Sprintf("environment %s requires %s of each promotion", e.Name, registry.Count(e.Approvals.Count, "approval"))}
	for _, g := range e.Approvals.Groups {
		facts = append(facts, fmt.Sprintf("environment %s requires %s of group %s: %s", e.Name,
			registry.Count(g.Count, "approval"), g.Name, strings.Join(g.Keys, ", ")))
	}
	return facts
}

// trustFacts has a fact for each role and resource, so that the change of one is one line.
func (s Snapshot) trustFacts(e trust.TrustEntry) []string {
	who := s.signer(e)
	counts := ""
	switch e.State {
	case evidence.KeyRetired:
		counts = fmt.Sprintf("; the key is retired: statements recorded before %s count", e.RetiredAt.Format("2006-01-02T15:04:05Z"))
	case evidence.KeyRevoked:
		counts = "; the key is revoked: only its statements against a release count"
	}
	if !e.Window.IsZero() {
		counts += "; statements made " + e.Window.String() + " count"
	}
	var facts []string
	for _, role := range e.Roles {
		for _, resource := range e.Resources {
			line := fmt.Sprintf("%s is trusted as %s for %s%s", who, role, resource, counts)
			if role == evidence.RoleVerifier && len(e.NodeTypes) > 0 {
				line += "; on node types " + strings.Join(e.NodeTypes, ", ")
			}
			facts = append(facts, line)
		}
	}
	return facts
}

// KeyID returns the identifier of the key of a trust entry. It is "" if the key has no file,
// or if [Files] was read without KeyID.
func (s Snapshot) KeyID(e trust.TrustEntry) string { return s.keys[e.Key].id }

// signer names the key by its identifier, so that another key in the same file is another
// signer.
func (s Snapshot) signer(e trust.TrustEntry) string {
	if e.Identity != nil {
		return e.String()
	}
	key, exists := s.keys[e.Key]
	switch {
	case !exists:
		return fmt.Sprintf("any key that is put into the missing file %s", e.Key)
	case key.id == "":
		return "key " + e.Key
	}
	return fmt.Sprintf("key %s (%s)", key.id, e.Key)
}

// maxReason bounds how much of the changes the history keeps.
const maxReason = 1000

// reason makes the reason of an event from as many of the changes as fit.
func reason(changes []string) string {
	text := ""
	for i, c := range changes {
		more := fmt.Sprintf("; and %d more", len(changes)-i)
		if len(text)+len(c)+len(more)+2 > maxReason {
			return strings.TrimPrefix(text+more, "; ")
		}
		text = strings.TrimPrefix(text+"; "+c, "; ")
	}
	return text
}
