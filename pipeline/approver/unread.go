package approver

import (
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// Unread is a release that could not be read, so that nothing is known of its engines. Lists name it and go on: damage of one
// release must not hide the others.
type Unread struct {
	Environment string          `json:"environment"`
	Model       string          `json:"model"`
	Release     registry.Digest `json:"release"`
	Reason      string          `json:"reason"`
}

// unreadable reports whether an error is about what a release consists of, and not about the registry or who asks.
func unreadable(err error) bool {
	return err != nil && slices.Contains([]registry.Code{registry.CodeTrust, registry.CodeDigest, registry.CodeUnsafe, registry.CodeInvalid,
		registry.CodeNotFound, registry.CodeInternal}, registry.CodeOf(err))
}
