package nodeverbs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/pipeline/pull"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/policy"
)

// Trust checks signatures.
func (v Verbs) Trust() *cobra.Command {
	var file, restrictions string
	var machine nodeFlags
	var want pull.Expectation
	c := &cobra.Command{
		Use:   "trust REF|DIR",
		Short: "Check the signatures of a release or a pulled folder",
		Long: `For a folder that pull made: every file is as pulled, a trusted builder signed
the engine, a trusted promoter let it into its environment, and nothing in the folder
speaks against it, such as a quarantine or a failing report. Needs no registry: the proof
lies in the folder, the trust in --trust FILE or the data directory.

--env, --model, --version and --max-age name the expected content: the folder proves its
content, and not that this machine wants it. An engine that was pulled from where
builds write has no promoter: --unpromoted accepts it. --restrictions FILE checks the folder
against a restriction list that is newer than the one it was pulled with. With a trust file that has
follow:, the last trust bundle that was accepted here counts, even if it has expired, and the
restriction list in it.

A failed report from a machine like this one blocks the engine here. --node and --runtime say
which machine loads the engine, if it is not this one, or has runtimes that mlpromote did not install.

For a REF: that a builder signed it and, in a protected environment, that a promoter let it in and
nothing speaks against it. It lists every bundle, when it was made, who signed it, and which roles
that key has there. TIME names its proof: a timestamp that is trusted here, the history that
recorded it, or, without a history, only a claim.`,
		Example: "  " + v.UI.Program + " trust /srv/digits --trust trust.yaml --env prod --model vision/digits --max-age 720h",
		Args:    command.Exactly("REF|DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			info, err := os.Stat(args[0])
			if err == nil && info.IsDir() {
				if restrictions != "" {
					if want.Restrictions, err = os.ReadFile(restrictions); err != nil {
						return registry.Errorf(registry.CodeInvalid, "--restrictions: %w", err)
					}
				}
				query, err := v.query(c, nil, machine, "")
				if err != nil {
					return err
				}
				want.Node = query.Machine()
				return v.trustDir(c.Context(), args[0], file, want)
			}
			if _, unread := registry.ParseRef(args[0]); unread != nil && errors.Is(err, fs.ErrNotExist) {
				return registry.Errorf(registry.CodeInvalid, "no folder %s, and no %w", args[0], unread)
			}
			for _, name := range []string{"trust", "env", "model", "version", "max-age", "unpromoted", "restrictions", "node", "runtime"} {
				if c.Flags().Changed(name) {
					return registry.Errorf(registry.CodeInvalid, "--%s is for a folder that pull made, and %s is none", name, args[0])
				}
			}
			return v.With(c.Context(), func(r *connect.Registry) error { return v.trustRef(c.Context(), r, args[0]) })
		},
	}
	c.Flags().StringVar(&file, "trust", "", "file with the registry: and trust: to judge by, or with follow: (default: the data directory's)")
	c.Flags().StringVar(&want.Environment, "env", "", "environment that it must be from")
	c.Flags().StringVar(&want.Model, "model", "", "model that it must be of")
	c.Flags().StringVar(&want.Version, "version", "", "version that it must be")
	c.Flags().DurationVar(&want.MaxAge, "max-age", 0, "how long ago a promoter may have verified it (default: any time)")
	c.Flags().StringVar(&restrictions, "restrictions", "", "file with a newer restriction list of the environment, from quarantine export")
	c.Flags().BoolVar(&want.Unpromoted, "unpromoted", false, "accept an engine that no promoter let into its environment")
	c.Flags().StringVar(&machine.node, "node", "", "node document of the machine that loads the engine (default: this machine)")
	c.Flags().StringVar(&machine.runtime, "runtime", "", "NAME:VERSION such as onnxruntime:1.30.0, or a runtime document (default: the node's)")
	return c
}

func (v Verbs) trustDir(ctx context.Context, dir, file string, want pull.Expectation) error {
	if want.MaxAge < 0 {
		return registry.Errorf(registry.CodeInvalid, "--max-age %s: want more than nothing", want.MaxAge)
	}
	trust, err := v.trust(file).Recall(ctx)
	if err != nil {
		return err
	}
	verify, err := trust.Verify()
	if err != nil {
		return err
	}
	if want.Registry, err = trust.RegistryName(); err != nil {
		return err
	}
	if old := trust.Expired(); old != nil {
		v.UI.Note("judged by the bundle that was accepted last, though it admits nothing new: %v", old)
	}
	want.Known = trust.KnownRestrictions
	result, err := pull.Checker{Verify: verify, ReadPart: oci.ReadPart}.Check(ctx, dir, want)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s\nbuilder   %s", ui.Plain(result.Record.Ref), ui.Plain(result.Builder))
	if result.Promoter != "" {
		text += fmt.Sprintf("\npromoter  %s\nversion   %s\npromoted  %s (%s)", ui.Plain(result.Promoter),
			ui.Plain(result.Record.Version), result.Promoted.UTC().Format(time.DateTime), result.PromotedBy)
	}
	return v.UI.Result(text, result)
}

// expectation is what this machine knows of an environment that it pulls from, whatever
// the registry says. A trust file knows no environments, so that everything needs the
// summary of a promoter.
func expectation(trust connect.Trust, environment string, unpromoted bool) (pull.Expectation, error) {
	want := pull.Expectation{Unpromoted: unpromoted, Known: trust.KnownRestrictions}
	var err error
	if want.Registry, err = trust.RegistryName(); err != nil {
		return want, err
	}
	unprotected, err := trust.Unprotected(environment)
	want.Unpromoted = unpromoted || unprotected
	return want, err
}

// RoleNames lists roles: "builder, verifier".
func RoleNames(roles []evidence.Role) string {
	var names []string
	for _, r := range roles {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

// timeText is when evidence existed, and what shows it.
func timeText(e inspection.Claim) string {
	if e.TimeSource == "" {
		return "unknown"
	}
	return fmt.Sprintf("%s (%s)", e.Time.UTC().Format(time.DateTime), e.TimeSource)
}

func (v Verbs) trustRef(ctx context.Context, r *connect.Registry, arg string) error {
	ref, err := registry.ParseRef(arg)
	if err != nil {
		return err
	}
	v.Subject(ref.String())
	if ref, err = r.WithoutHost(ref); err != nil {
		return err
	}
	found, err := inspection.Of(ctx, r, ref)
	if err != nil {
		return err
	}
	rows := [][]string{{"SUBJECT", "TIME", "PREDICATE", "SIGNER", "ROLES"}}
	for _, e := range found.Evidence {
		rows = append(rows, []string{ui.Short(e.Subject), timeText(e), e.PredicateType, e.Signer, RoleNames(e.Roles)})
	}
	if out := v.UI.Result(ui.Table(rows), found); out != nil {
		return out
	}
	return stands(ctx, r, ref.Environment, found)
}

// stands checks that a release may be used: that a builder signed it and, in a protected environment, all that
// [policy.CheckStanding] requires there.
func stands(ctx context.Context, r *connect.Registry, environment string, found inspection.Result) error {
	all, err := r.Environments(ctx)
	if err != nil {
		return err
	}
	e, err := all.Find(environment)
	if err != nil {
		return err
	}
	decision := policy.Policy{Require: []string{policy.RequireSignature}}.Check(found.Release, found.Claims)
	if e.Protected() {
		restricted, err := r.Restrictions(ctx, environment)
		if err != nil {
			return err
		}
		decision = policy.CheckStanding(all.ResourceURI(environment, found.Release.Model), found.Release, found.Claims, restricted.Restrictions())
	}
	var errs []error
	for _, unmet := range decision.Unmet() {
		errs = append(errs, registry.Errorf(registry.CodeTrust, "%s: %s of %s: %s", found.Ref, unmet.Name, unmet.Subject, unmet.Detail))
	}
	return errors.Join(errs...)
}
