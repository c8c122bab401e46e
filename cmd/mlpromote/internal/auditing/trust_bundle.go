package auditing

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
)

// shownTrust is the newest trust bundle of a registry.
type shownTrust struct {
	trust.SignedTrust
	Published bool   `json:"published"` // by this command
	File      string `json:"file,omitempty"`
}

// TrustBundle shows the newest trust bundle, or writes it to a file.
func (v Verbs) TrustBundle() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "bundle",
		Short: "Show the newest trust bundle of a registry, or write it to a file",
		Long: `A trust bundle has the rules for judging content of a registry: keys with their roles and
states, roots, the restriction list of every environment, and a checkpoint of the history. A
publisher signs it; it has a version and a time at which it expires.

The signature is verified by the environments.yaml of this machine. With -o FILE the signed
bundle is written, a sigstore bundle, which also cosign verifies.`,
		Example: "  mlpromote trust bundle\n  mlpromote trust bundle -o trust-bundle.json",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return v.With(c.Context(), func(i *wiring.Instance) error { return v.trustBundle(c.Context(), i, file) })
		},
	}
	c.Flags().StringVarP(&file, "out", "o", "", "file to write")
	return c
}

func (v Verbs) trustBundle(ctx context.Context, i *wiring.Instance, file string) error {
	signed, err := i.TrustBundle(ctx)
	if err != nil {
		return err
	}
	claim, err := i.Verify(ctx, signed.Bundle, trust.RegistryURI(i.Envs.Registry))
	if err != nil {
		return err
	}
	// A key that was retired since has published what it did; followers ask what the newest bundle says.
	if claim.Key == evidence.KeyRetired {
		claim.Key = evidence.KeyTrusted
	}
	if signed.Trust, err = trust.BundleOf(claim, i.Envs.Registry); err != nil {
		return err
	}
	if err := signed.Trust.CheckCurrent(clock.Now()); err != nil {
		v.UI.Warn(err.Error())
	}
	if file != "" {
		if err := atomicfile.Write(file, signed.Bundle, 0o644); err != nil {
			return err
		}
	}
	return v.UI.Result(trustText(signed, clock.Now()), shownTrust{SignedTrust: signed, File: file})
}

// TrustPublish publishes the next trust bundle.
func (v Verbs) TrustPublish(files func() config.Files) *cobra.Command {
	var life time.Duration
	var renew bool
	c := &cobra.Command{
		Use:   "publish",
		Short: "Sign and publish the next trust bundle of a registry",
		Long: `Makes a trust bundle of the environments.yaml and keys of this machine, with the restriction lists
and a checkpoint of the registry, signs it with the key of a publisher (publisher.key, or
publisher.kms), and publishes it. Machines that follow the registry take it before they pull.

It does nothing if the newest bundle is the same and has more than half of its life. The registry
refuses a bundle that differs from its own environments.yaml. A service that has the key itself publishes
without this command.`,
		Example: "  mlpromote trust publish\n  mlpromote trust publish --life 720h --registry https://registry.example.com",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := wiring.CheckTrustLife(life); err != nil {
				return registry.Errorf(registry.CodeInvalid, "--life: %w", err)
			}
			return v.With(c.Context(), func(i *wiring.Instance) error { return v.trustPublish(c.Context(), i, files(), life, renew) })
		},
	}
	c.Flags().DurationVar(&life, "life", wiring.TrustLife, "how long the bundle lives")
	c.Flags().BoolVar(&renew, "renew", false, "publish even if the newest bundle is the same and young")
	return c
}

func (v Verbs) trustPublish(ctx context.Context, i *wiring.Instance, files config.Files, life time.Duration, renew bool) error {
	own, err := files.Read()
	if err != nil {
		return err
	}
	signed, fresh, err := i.TrustPublisher(own, i.Checkpoints.Checkpoint, life).Publish(ctx, renew)
	if err != nil {
		return err
	}
	if !fresh {
		v.UI.Note("nothing to do: version %d is the same, and more than half of its life is left (--renew publishes all the same)", signed.Trust.Version)
	}
	return v.UI.Result(trustText(signed, clock.Now()), shownTrust{SignedTrust: signed, Published: fresh})
}

// trustText shows a bundle: its version and times, and a line for each entry.
func trustText(s trust.SignedTrust, now time.Time) string {
	b := s.Trust
	day := func(t time.Time) string { return t.UTC().Format(time.DateTime) }
	text := fmt.Sprintf("trust bundle %d of %s\ndigest      %s\nsigned by   %s\nissued      %s, %s ago\nexpires     %s\ncheckpoint  %s\n",
		b.Version, ui.Plain(b.Registry), s.Digest,
		ui.Plain(s.Signer), day(b.IssuedOn), max(0, now.Sub(b.IssuedOn)).Round(time.Second),
		day(b.ExpiresOn), registry.Count(int(b.Checkpoint.Size), "event"))
	for _, l := range b.Restrictions {
		text += fmt.Sprintf("restricted  %s: list %d\n", ui.Plain(l.Environment), l.Counter)
	}
	rows := [][]string{{"SIGNER", "STATE", "ROLES", "RESOURCES"}}
	for _, t := range b.Trust {
		rows = append(rows, []string{t.Entry.String(), string(t.Entry.EffectiveState()), fmt.Sprint(t.Entry.Roles), fmt.Sprint(t.Entry.Resources)})
	}
	return text + ui.Table(rows)
}
