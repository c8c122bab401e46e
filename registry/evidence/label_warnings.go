package evidence

import (
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// maxLabelWarnings is how many warnings about labels are repeated: builds of several machines can give different ones.
const maxLabelWarnings = 3

// LabelWarningsOf returns the warnings about the labels of the cases that builders put into the provenance of engines, each once, as
// plain text. Provenance that does not count is left out.
func LabelWarningsOf(r artifact.Release, claims []Claim) []string {
	counted, _ := Accept(r, claims)
	var all []string
	for _, c := range counted {
		for _, text := range c.Statement.labelWarnings() {
			if text = registry.PlainText(text); len(all) < maxLabelWarnings && !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

func (s Statement) labelWarnings() []string {
	var predicate struct {
		BuildDefinition struct {
			InternalParameters struct {
				LabelWarnings []string `json:"labelWarnings"`
			} `json:"internalParameters"`
		} `json:"buildDefinition"`
	}
	if s.PredicateType != PredicateProvenance || registry.DecodeSigned(s.Predicate, &predicate) != nil {
		return nil
	}
	return predicate.BuildDefinition.InternalParameters.LabelWarnings
}
