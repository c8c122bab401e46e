// Package nodeverbs has the verbs for machines that run engines: resolve, pull, trust and describe. Both programs
// have them.
package nodeverbs

import (
	"context"
	"reflect"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/pipeline/pull"
	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Verbs makes the verbs of a program. Functions are called when a verb runs, since flags and environment are not
// read before that.
type Verbs struct {
	UI *ui.UI
	// With opens the registry that the flags name, runs verb on it and closes it.
	With func(ctx context.Context, verb func(*connect.Registry) error) error
	// PolicyFolder has environments.yaml, which says whom this machine trusts.
	PolicyFolder func() string
	Getenv       func(name string) string
	Subject      func(string)  // told what a verb is about, for its error
	Now          storage.Clock // nil means time.Now
}

// trust is a trust file; an empty name means the environments.yaml of this machine.
func (v Verbs) trust(file string) connect.Trust {
	return connect.Trust{File: file, PolicyFolder: v.PolicyFolder(), Now: v.Now}
}

// follow accepts the newest trust bundle of a registry, where the trust file follows it, and holds the restriction
// list that the registry hands out against it.
func (v Verbs) follow(ctx context.Context, r *connect.Registry, file, environment string) (connect.Trust, error) {
	trust, err := v.trust(file).Follow(ctx, r)
	if err != nil {
		return trust, err
	}
	if follows, err := trust.Follows(); !follows {
		return trust, err
	}
	signed, err := r.Restrictions(ctx, environment)
	if err != nil {
		return trust, err
	}
	return trust, trust.CheckRestrictions(signed)
}

// Machine reads this machine, with the runtimes that our own toolchains brought.
func (v Verbs) Machine(ctx context.Context) (artifact.Node, error) {
	var runtimes map[string]string
	if folder, err := installed.Folder(v.Getenv("MLPROMOTE_INSTALLS"), v.Getenv("MLPROMOTE_CACHE")); err == nil {
		runtimes = installed.Runtimes(folder) // without any folder nothing is installed
	}
	return node.Describe(ctx, node.Options{Runtimes: runtimes})
}

// Documents are what resolve, pull and trust print with --output json.
func Documents() map[string][]reflect.Type {
	return map[string][]reflect.Type{
		"resolve": {reflect.TypeFor[api.Resolution]()},
		"pull":    {reflect.TypeFor[pull.Result]()},
		"trust":   {reflect.TypeFor[pull.Proof](), reflect.TypeFor[inspection.Result]()}, // the latter about a reference
	}
}
