package inspection

import (
	"context"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// shownNames is how many names of an input or output are shown.
const shownNames = 5

// Names are the names of the features of an input, or of the classes of an output.
type Names struct {
	Input  string   `json:"input,omitempty"`
	Output string   `json:"output,omitempty"`
	Count  int      `json:"count"`
	First  []string `json:"first"` // at most five
}

// names reads the names in the interface of a release. Of an interface that cannot be read there are
// none: the rest of the release is shown all the same.
func names(ctx context.Context, in *connect.Registry, environment string, r registry.Release) []Names {
	iface, err := readInterface(ctx, in, registry.Repository(environment, r.Model), r.Interface)
	if err != nil {
		return nil
	}
	return NamesOf(iface)
}

// NamesOf returns the names of an interface.
func NamesOf(iface validators.Interface) []Names {
	var all []Names
	for _, t := range iface.Inputs {
		if n := len(t.Names); n > 0 {
			all = append(all, Names{Input: t.Name, Count: n, First: t.Names[:min(n, shownNames)]})
		}
	}
	for _, t := range iface.Outputs {
		if n := len(t.Names); n > 0 {
			all = append(all, Names{Output: t.Name, Count: n, First: t.Names[:min(n, shownNames)]})
		}
	}
	return all
}

func readInterface(ctx context.Context, in *connect.Registry, repository string, part registry.Digest) (i validators.Interface, err error) {
	dir, err := os.MkdirTemp("", "mlpromote-inspect-*")
	if err != nil {
		return i, err
	}
	defer os.RemoveAll(dir)
	fetched, err := in.Store.Fetch(ctx, repository, part, dir)
	if err != nil {
		return i, err
	}
	if len(fetched.Files) != 1 {
		return i, registry.Errorf(registry.CodeInvalid, "interface %s has %d files: want one", part, len(fetched.Files))
	}
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(fetched.Files[0].Path)))
	if err != nil {
		return i, err
	}
	return validators.ParseInterface(data)
}
