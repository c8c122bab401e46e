package readiness

import (
	"slices"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// Readiness lists what a release is proven to be, with the proof, and what is missing. It decides nothing: only
// [policy.Policy.Check] does, and what the policy of the destination says is beside each item that it asks for. It depends
// only on its argument.
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
