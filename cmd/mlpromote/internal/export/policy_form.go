package export

import (
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Consumers are the admission controllers that a policy can be written for.
const (
	ForKyverno          = "kyverno"
	ForPolicyController = "policy-controller"
)

// YAML writes the policy for an admission controller. The same Admission and time give the same bytes. Errors:
// CodeInvalid for another consumer.
func (a Admission) YAML(consumer string, at time.Time) (string, error) {
	switch consumer {
	case ForKyverno:
		return a.kyverno(at), nil
	case ForPolicyController:
		return a.policyController(at), nil
	}
	return "", registry.Errorf(registry.CodeInvalid, "--for %.40q: want %s or %s", consumer, ForPolicyController, ForKyverno)
}
