package main

import (
	"context"
	"os"
	"path/filepath"

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
	iface, _, err := readPart(ctx, i, repository, part, validators.ParseInterface)
	return iface, err
}

// readPart reads the only file of a part, such as limits.json, and what is in it.
func readPart[T any](ctx context.Context, i *wiring.Instance, repository string,
	part registry.Digest, parse func([]byte) (T, error)) (read T, data []byte, err error) {
	dir, err := os.MkdirTemp("", "mlpromote-inspect-*")
	if err != nil {
		return read, nil, err
	}
	defer os.RemoveAll(dir)
	fetched, err := i.Store.Fetch(ctx, repository, part, dir)
	if err != nil {
		return read, nil, err
	}
	if len(fetched.Files) != 1 {
		return read, nil, registry.Errorf(registry.CodeInvalid, "part %s has %d files: want one", part, len(fetched.Files))
	}
	if data, err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(fetched.Files[0].Path))); err != nil {
		return read, nil, err
	}
	read, err = parse(data)
	return read, data, err
}
