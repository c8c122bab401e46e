package main

import (
	"context"

	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// shownNames is how many names of an input or output are shown.
const shownNames = 5

// namesIn reads the names in the interface of a release. Of an interface that cannot be read there are
// none: the rest of the release is shown all the same.
func namesIn(ctx context.Context, i *wiring.Instance, environment string, r registry.Release) []inspection.Names {
	iface, err := readInterface(ctx, i, registry.Repository(environment, r.Model), r.Interface)
	if err != nil {
		return nil
	}
	return namesOf(iface)
}

// namesOf returns the names of an interface.
func namesOf(iface validators.Interface) []inspection.Names {
	var all []inspection.Names
	for _, t := range iface.Inputs {
		if n := len(t.Names); n > 0 {
			all = append(all, inspection.Names{Input: t.Name, Count: n, First: t.Names[:min(n, shownNames)]})
		}
	}
	for _, t := range iface.Outputs {
		if n := len(t.Names); n > 0 {
			all = append(all, inspection.Names{Output: t.Name, Count: n, First: t.Names[:min(n, shownNames)]})
		}
	}
	return all
}

func readInterface(ctx context.Context, i *wiring.Instance, repository string, part registry.Digest) (validators.Interface, error) {
	iface, _, err := inspection.ReadPart(ctx, i.Store, repository, part, validators.ParseInterface)
	return iface, err
}
