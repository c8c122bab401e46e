package evidence

import "mlpromote.dev/mlpromote/registry/artifact"

// LeftOutOf returns the engines that builders say the release was made without, of the claims that
// count. An engine that the release has is not among them.
func LeftOutOf(r artifact.Release, claims []Claim) []LeftOut {
	counted, _ := Accept(r, claims)
	var all []LeftOut
	seen := make(map[string]bool)
	for _, e := range r.Engines {
		seen[e.Label()] = true
	}
	for _, c := range counted {
		if c.Subject != r.Digest {
			continue
		}
		for _, left := range c.Statement.leftOut() {
			if !seen[left.Label] {
				seen[left.Label] = true
				all = append(all, left)
			}
		}
	}
	return all
}
