package inspection

import (
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// maxLabelWarnings is how many warnings about labels are repeated: builds of several machines can give different ones.
const maxLabelWarnings = 3

// LabelWarnings returns the warnings about the labels of the cases that builders put into the provenance of engines, each once, as
// plain text. Provenance that does not count is left out.
func LabelWarnings(r artifact.Release, claims []evidence.Claim) []string {
	counted, _ := evidence.Accept(r, claims)
	var all []string
	for _, c := range counted {
		for _, text := range labelWarnings(c.Statement) {
			if text = registry.PlainText(text); len(all) < maxLabelWarnings && !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

func labelWarnings(s evidence.Statement) []string {
	var predicate struct {
		BuildDefinition struct {
			InternalParameters struct {
				LabelWarnings []string `json:"labelWarnings"`
			} `json:"internalParameters"`
		} `json:"buildDefinition"`
	}
	if s.PredicateType != evidence.PredicateProvenance || registry.DecodeSigned(s.Predicate, &predicate) != nil {
		return nil
	}
	return predicate.BuildDefinition.InternalParameters.LabelWarnings
}

// Origin returns where the spec of a release came from, by the claims that count; nil if none names it.
func Origin(r artifact.Release, claims []evidence.Claim) *evidence.Origin {
	counted, _ := evidence.Accept(r, claims)
	for _, c := range counted {
		if from := c.Statement.Origin(); from != nil && c.Subject == r.Digest {
			return from
		}
	}
	return nil
}
