package sandbox

import (
	"slices"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// level is one way to restrict a program.
type level struct {
	Sandbox toolchain.Sandbox `json:"sandbox"`
	// UserNamespace is true if the namespaces belong to a new user namespace. Without one, only
	// root can create them.
	UserNamespace bool `json:"userNamespace"`
}

func (l level) String() string {
	if l.UserNamespace {
		return "user " + string(l.Sandbox)
	}
	return string(l.Sandbox)
}

// reaches reports whether the level is at least as strong as a sandbox, which may be empty for any.
func (l level) reaches(least toolchain.Sandbox) bool {
	order := []toolchain.Sandbox{"", toolchain.SandboxNone, toolchain.SandboxLandlock, toolchain.SandboxNamespaces}
	return slices.Index(order, l.Sandbox) >= slices.Index(order, least)
}
