package authn

import "mlpromote.dev/mlpromote/registry/internal/rounds"

// Shared returns a function that looks for all who call it at the same time: what each gets was found
// after its call. It is for a look that takes longer than to wait for another's.
func Shared(look func() bool) func() bool {
	group := new(rounds.Group[bool])
	return func() bool { return group.Do(look) }
}
