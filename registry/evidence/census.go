package evidence

import (
	"cmp"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// What the operators of an engine were counted in.
const (
	CensusOfEngine = "engine" // the graph that is in its files
	CensusOfGraph  = "graph"  // the graph that its compiler took
)

// Census counts the operators of an engine. A build signs it with the provenance, so that nobody has to read the engine to know it.
type Census struct {
	Of     string         `json:"of"`
	Counts map[string]int `json:"counts"` // by domain and name, such as "ai.onnx.Conv"
}

// OperatorChange is an operator that one engine has more often than another one.
type OperatorChange struct {
	Operator string `json:"operator"`
	Was      int    `json:"was"`
	Is       int    `json:"is"`
}

// Changes lists the operators that another engine does not have as often, by name. Nil: there are none.
func (c Census) Changes(is Census) []OperatorChange {
	var all []OperatorChange
	for operator, n := range c.Counts {
		if is.Counts[operator] != n {
			all = append(all, OperatorChange{operator, n, is.Counts[operator]})
		}
	}
	for operator, n := range is.Counts {
		if _, both := c.Counts[operator]; !both && n != 0 {
			all = append(all, OperatorChange{operator, 0, n})
		}
	}
	slices.SortFunc(all, func(a, b OperatorChange) int { return cmp.Compare(a.Operator, b.Operator) })
	return all
}

// OperatorsOf is the census in the newest provenance of an engine that counts and has one; nil if none has. claims are about the release.
func OperatorsOf(r artifact.Release, claims []Claim, engine registry.Digest) *Census {
	counted, _ := Count(r, claims)
	var found *Census
	var at time.Time
	for _, c := range counted.Of(PredicateProvenance, engine) {
		var p struct {
			BuildDefinition struct {
				InternalParameters struct {
					Operators *Census `json:"operators"`
				} `json:"internalParameters"`
			} `json:"buildDefinition"`
			RunDetails struct {
				Metadata struct {
					FinishedOn time.Time `json:"finishedOn"`
				} `json:"metadata"`
			} `json:"runDetails"`
		}
		if registry.DecodeSigned(c.Statement.Predicate, &p) != nil || p.BuildDefinition.InternalParameters.Operators == nil {
			continue
		}
		if finished := p.RunDetails.Metadata.FinishedOn; at.IsZero() || finished.After(at) {
			found, at = p.BuildDefinition.InternalParameters.Operators, finished
		}
	}
	return found
}
