package proving

import (
	"context"

	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/printing"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
)

// namesIn reads the names in the interface of a release. Of an interface that cannot be read there are
// none: the rest of the release is shown all the same.
func namesIn(ctx context.Context, i *wiring.Instance, environment string, r artifact.Release) []inspection.Names {
	iface, err := readInterface(ctx, i, registry.Repository(environment, r.Model), r.Interface)
	if err != nil {
		return nil
	}
	return printing.NamesOf(iface)
}

func readInterface(ctx context.Context, i *wiring.Instance, repository string, part registry.Digest) (validators.Interface, error) {
	iface, _, err := inspection.ReadPart(ctx, i.Store, repository, part, validators.ParseInterface)
	return iface, err
}
