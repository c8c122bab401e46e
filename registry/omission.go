package registry

// LeftOut is an engine of a spec that a release was made without, because it could not be made and
// the build was asked to keep going.
type LeftOut struct {
	Label string `json:"label"`
	Code  Code   `json:"code"` // class of the failure: "unavailable" if its toolchain was not to be had
}

// LeftOut returns the engines that builders say the release was made without, of the claims that
// count. An engine that the release has is not among them.
func (r Release) LeftOut(claims []Claim) []LeftOut {
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

// leftOut reads a statement of provenance about a release.
func (s Statement) leftOut() []LeftOut {
	var predicate struct {
		BuildDefinition struct {
			InternalParameters struct {
				LeftOut []LeftOut `json:"leftOut"`
			} `json:"internalParameters"`
		} `json:"buildDefinition"`
	}
	if s.PredicateType != PredicateProvenance || DecodeSigned(s.Predicate, &predicate) != nil {
		return nil
	}
	return predicate.BuildDefinition.InternalParameters.LeftOut
}
