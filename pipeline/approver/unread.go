package approver

import "mlpromote.dev/mlpromote/registry"

// Unread is a release that could not be read, so that nothing is known of its engines. Lists name it and go on: damage of one
// release must not hide the others.
type Unread struct {
	Environment string          `json:"environment"`
	Model       string          `json:"model"`
	Release     registry.Digest `json:"release"`
	Reason      string          `json:"reason"`
}
