package pipeline

import "mlpromote.dev/mlpromote/registry"

// LabelledCases are cases of which only the name of the labels is known.
func LabelledCases(labels string) caseSet { return caseSet{set: registry.Set{Labels: labels}} }
