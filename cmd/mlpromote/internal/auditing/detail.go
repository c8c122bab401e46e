package auditing

import "mlpromote.dev/mlpromote/registry/history"

// Detail says in one text what an event is about.
func Detail(e history.Event) string {
	if e.PredicateType != "" && e.Reason != "" {
		return e.PredicateType + ": " + e.Reason
	}
	return e.PredicateType + e.Reason
}
