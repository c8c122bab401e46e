package restricting

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

func evidenceCommand(a *program.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "evidence",
		Short: "Delete evidence",
		Args:  cobra.NoArgs,
		RunE:  command.Unknown,
	}
	c.AddCommand(evidenceDeleteCommand(a))
	return c
}

func evidenceDeleteCommand(a *program.App) *cobra.Command {
	var d evidenceDeletion
	c := &cobra.Command{
		Use:   "delete REF [DIGEST...]",
		Short: "Delete evidence that no trusted key signed",
		Long: `Deletes evidence about a release and its engines that no trusted key signed and that the
history does not name: what somebody attached to be in the way. Without digests of its
manifests, as inspect --output json has them, all of it goes. Evidence that the history
names or a trusted key signed stays for as long as its subject. On a service this takes
the permission administer. stdout: the digests that were deleted.`,
		Example: "  mlpromote evidence delete staging/vision/digits:1.0.0 --dry-run\n  mlpromote evidence delete staging/vision/digits:1.0.0",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.With(c.Context(), func(i *wiring.Instance) error {
				ref, err := a.Reference(i, args[:1])
				if err != nil {
					return err
				}
				return deleteEvidence(c.Context(), a, i, ref, args[1:], d)
			})
		},
	}
	c.Flags().BoolVar(&d.dryRun, "dry-run", false, "change nothing")
	c.Flags().StringSliceVar(&d.types, "type", nil, "delete other referrers of this artifact type too")
	return c
}

// evidenceDeletion is what evidence delete is asked for.
type evidenceDeletion struct {
	types  []string // artifact types beside those of bundles
	dryRun bool
}

// deletedEvidence is what evidence delete did.
type deletedEvidence struct {
	Deleted []registry.Digest `json:"deleted"`
	Kept    int               `json:"kept,omitempty"` // refused by the registry
}

func deleteEvidence(ctx context.Context, a *program.App, i *wiring.Instance, ref registry.Ref, named []string, d evidenceDeletion) error {
	if host := i.HostOf(ref.Environment); host != i.Host {
		return registry.Errorf(registry.CodeInvalid, "the content of %s is on registry %s: delete it there", ref.Environment, host)
	}
	remove, err := i.ManifestDeleter(ctx, registry.Repository(ref.Environment, ref.Model))
	if err != nil {
		return err
	}
	r, err := i.Release(ctx, ref.Environment, ref.Model, ref.TagOrDigest())
	if err != nil {
		return err
	}
	attached, err := i.Attached(ctx, ref, r)
	if err != nil {
		return err
	}
	if len(named) > 0 {
		if err := checkAttached(named, attached, ref); err != nil {
			return err
		}
		return deleteNamed(ctx, a, named, d.dryRun, remove)
	}
	candidates, err := strangersEvidence(ctx, i, ref, r, attached, d.types)
	if err != nil {
		return err
	}
	did := deletedEvidence{Deleted: []registry.Digest{}}
	for _, digest := range candidates {
		var kept wiring.KeptError
		if !d.dryRun {
			err = remove(ctx, digest)
		}
		switch {
		case err == nil:
			did.Deleted = append(did.Deleted, digest)
		case registry.HasCode(err, registry.CodeNotFound): // somebody else was first
		case errors.As(err, &kept):
			did.Kept++
			a.UI.Note("%v", err)
		default:
			return errors.Join(a.UI.Result(deletedText(did), did), err)
		}
	}
	return a.UI.Result(deletedText(did), did)
}

// deleteNamed deletes manifests that were named, each of which has to go.
func deleteNamed(ctx context.Context, a *program.App, named []string, dryRun bool, remove func(context.Context, registry.Digest) error) error {
	did := deletedEvidence{Deleted: []registry.Digest{}}
	for _, text := range named {
		digest := registry.Digest(text)
		if !dryRun {
			if err := remove(ctx, digest); err != nil {
				return errors.Join(a.UI.Result(deletedText(did), did), err)
			}
		}
		did.Deleted = append(did.Deleted, digest)
	}
	return a.UI.Result(deletedText(did), did)
}

func deletedText(did deletedEvidence) string {
	text := ""
	for _, digest := range did.Deleted {
		text += string(digest) + "\n"
	}
	return text
}

// checkAttached refuses digests of anything else, such as an engine of another release.
func checkAttached(named []string, attached []wiring.Attached, ref registry.Ref) error {
	for _, text := range named {
		digest := registry.Digest(text)
		if err := digest.Validate(); err != nil {
			return registry.Errorf(registry.CodeInvalid, "digest %q: %w", text, err)
		}
		if !slices.ContainsFunc(attached, func(d wiring.Attached) bool { return d.Digest == digest }) {
			return registry.WithHint(registry.Errorf(registry.CodeNotFound, "%s is not attached to %s or one of its parts", digest, ref),
				"name the release that it is about: this verb deletes evidence, no releases and no engines")
		}
	}
	return nil
}

// strangersEvidence lists the evidence about a release that does not verify for anybody who is
// trusted there, of what is attached to it.
func strangersEvidence(ctx context.Context, i *wiring.Instance, ref registry.Ref, r artifact.Release,
	attached []wiring.Attached, types []string) ([]registry.Digest, error) {
	claims, _, err := i.Claims(ctx, ref.Environment, r)
	if err != nil {
		return nil, err
	}
	verified := make(map[registry.Digest]bool)
	for _, c := range claims {
		verified[c.Bundle] = true
	}
	var found []registry.Digest
	for _, referrer := range attached {
		if !verified[referrer.Digest] && (referrer.IsEvidence() || slices.Contains(types, referrer.ArtifactType)) {
			found = append(found, referrer.Digest)
		}
	}
	return found, nil
}
