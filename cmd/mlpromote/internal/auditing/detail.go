package auditing

import "mlpromote.dev/mlpromote/registry"

// Detail says in one text what an event is about.
func Detail(e registry.Event) string {
	if e.PredicateType != "" && e.Reason != "" {
		return e.PredicateType + ": " + e.Reason
	}
	return e.PredicateType + e.Reason
}
