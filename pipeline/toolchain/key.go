package toolchain

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// keyVersion changes when the meaning of a key's fields changes.
const keyVersion = "mlpromote.step/v1"

// stepKey is everything that can change the result of a step. Paths are not part of it.
type stepKey struct {
	Version string      `json:"version"`
	Verb    Verb        `json:"verb"`
	Inputs  []keyInput  `json:"inputs"`
	Options string      `json:"options"` // JSON text, since RFC 8785 would round large integers
	Run     *RunOptions `json:"run,omitempty"`
	Machine string      `json:"machine"`
	// Accelerators are absent where there are none, so that keys of other steps are as they were before.
	Accelerators []string `json:"accelerators,omitempty"`
	Platform     string   `json:"platform"`
	Tool         Identity `json:"tool"`
}

type keyInput struct {
	Role   string          `json:"role"`
	Name   string          `json:"name"`
	Digest registry.Digest `json:"digest"`
}

// Key returns the digest of everything that can change the result of a job: the verb, the
// inputs by role, name and digest, the options, the machine and the accelerators if the job names some, and the exact
// tool with its lock, code and fixed environment (which is part of Identity.Code). The order of
// Inputs does not matter. Errors: CodeInvalid for an incomplete job or an option that is not a
// JSON value.
func Key(job Job, tool Identity) (registry.Digest, error) {
	if err := job.Validate(); err != nil {
		return "", err
	}
	options, err := json.Marshal(job.Options)
	if err != nil {
		return "", registry.Errorf(registry.CodeInvalid, "%s: options: %w", job.Verb, err)
	}
	key := stepKey{
		Version: keyVersion, Verb: job.Verb, Options: string(options), Run: job.Run, Machine: job.Machine, Accelerators: slices.Sorted(slices.Values(job.Accelerators)),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Tool: tool,
	}
	for _, in := range job.Inputs {
		key.Inputs = append(key.Inputs, keyInput{in.Role, in.Name, in.Digest})
	}
	slices.SortFunc(key.Inputs, func(a, b keyInput) int {
		return strings.Compare(a.Role+"\x00"+a.Name, b.Role+"\x00"+b.Name)
	})
	return registry.CanonicalDigest(key)
}
