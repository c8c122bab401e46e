package readiness

import (
	"slices"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// Readiness lists the proofs of a release and the missing ones. It decides nothing: only [policy.Policy.Check] does. Each item that
// the policy of the destination asks for has the decision about it. The list depends only on the argument.
func Readiness(in ReadinessInput) []ReadinessItem {
	cs, _ := evidence.Count(in.Release, in.Claims)
	c := checklist{in: in, cs: cs}
	c.ofRelease()
	for _, e := range in.Release.Engines {
		c.ofEngine(e)
	}
	for i := range c.items {
		c.items[i].ask(in.Decision)
	}
	return c.items
}

// ask notes what the policy says about an item.
func (item *ReadinessItem) ask(d *policy.Decision) {
	if d == nil {
		return
	}
	for _, req := range d.Requirements {
		// The release's own signature is one thing, those of its engines are others.
		about := req.Subject == item.Subject || item.Subject == policy.ReadinessSubjectAll && item.Name != policy.ReadySignature
		if !about || !slices.Contains(policy.RequirementsAbout(item.Name), req.Name) {
			continue
		}
		if !slices.Contains(item.Asked, req.Name) {
			item.Asked = append(item.Asked, req.Name)
		}
		if !req.Met && !req.Skipped && item.Refused == "" {
			item.Refused = req.Detail
			if item.State == Ready {
				item.State = Missing
			}
		}
	}
}
