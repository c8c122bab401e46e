package restricting

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/printing"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/approver"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// restrictionFlags name what releases must not be made from.
type restrictionFlags struct{ source, calibration, toolchain, operator []string }

func (f *restrictionFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.source, "source", nil,
		"every release that was made from this: digest of a file of the model, of its sources or its reference; repeatable")
	c.Flags().StringArrayVar(&f.calibration, "calibration", nil,
		"every engine that was quantized with this data: digest of a file or of the calibration part; repeatable")
	c.Flags().StringArrayVar(&f.toolchain, "toolchain", nil,
		"every engine that was made with these versions of a toolchain: NAME@RANGE, such as 'onnxruntime@<1.24.0'; repeatable")
	c.Flags().StringArrayVar(&f.operator, "operator", nil, "every engine that carries this operator library: its digest; repeatable")
}

// restrictions reads the flags.
func (f *restrictionFlags) restrictions() ([]evidence.Restriction, error) {
	var all []evidence.Restriction
	for _, flag := range []struct {
		kind   evidence.RestrictionKind
		values []string
	}{
		{evidence.RestrictSource, f.source}, {evidence.RestrictCalibration, f.calibration},
		{evidence.RestrictToolchain, f.toolchain}, {evidence.RestrictOperator, f.operator},
	} {
		for _, value := range flag.values {
			r, err := evidence.ParseRestriction(flag.kind, value)
			if err != nil {
				return nil, err
			}
			all = append(all, r)
		}
	}
	return all, nil
}

// releaseOrFlags takes a REF or DIGEST, or else flags that say what is restricted.
func (f *restrictionFlags) releaseOrFlags(c *cobra.Command, args []string) error {
	if len(f.source)+len(f.calibration)+len(f.toolchain)+len(f.operator) == 0 {
		return command.Exactly("REF|DIGEST")(c, args)
	}
	if len(args) > 0 {
		return command.Usage(c, registry.Errorf(registry.CodeInvalid,
			"%s: name a release or engine, or what releases were made from, and not both", args[0]))
	}
	return nil
}

func restricter(i *wiring.Instance) approver.Restricter {
	return approver.Restricter{
		Registry: i, Environments: i.Envs, NodeTypes: i.NodeTypes, Nodes: i.Nodes, Sign: i.Keys.Sign, Now: clock.Now,
		Key: func(ctx context.Context) (string, error) {
			s, err := i.Keys.Signer(ctx, evidence.RoleApprover)
			if err != nil {
				return "", err
			}
			if s.KeyID() == "" {
				return "", registry.Lastingf(registry.CodeUnavailable, "an identity signs no restriction lists: want a key, approver.key")
			}
			return s.KeyID(), nil
		},
	}
}

// restrict changes what is restricted, and shows what is in force where that succeeded.
func restrict(ctx context.Context, a *program.App, i *wiring.Instance, change approver.Change) error {
	all, err := restricter(i).Change(ctx, change)
	if len(all) == 0 {
		return err
	}
	if err == nil && len(change.Add) > 0 && !concernsAny(all) {
		a.UI.Note("no engine at a head was made from a restricted ingredient: if you expected one, check the digest or the name")
	}
	if err != nil {
		a.UI.Note("only the environments that are listed were changed")
	}
	return errors.Join(a.UI.Result(restrictedText(all), all), err)
}

func concernsAny(all []approver.Restricted) bool {
	for _, r := range all {
		if len(r.Heads)+len(r.Nodes)+len(r.Unread) > 0 {
			return true
		}
	}
	return false
}

// restrictedText has a block for each environment: what is in force, and what it concerns.
func restrictedText(all []approver.Restricted) string {
	var lines []string
	line := func(format string, args ...any) { lines = append(lines, ui.Plain(fmt.Sprintf(format, args...))) }
	for _, r := range all {
		line("%s: %s, list %d", r.Environment, registry.Count(len(r.InForce), "restriction"), r.Counter)
		for _, entry := range r.InForce {
			line("  %s, since %s: %s", entry, entry.IssuedOn.UTC().Format(time.DateTime), entry.Reason)
		}
		for _, head := range r.Heads {
			for _, e := range head.Engines {
				line("  head %s:%s: %s: %s", head.Model, head.Version, e.Label, strings.Join(e.Reasons, "; "))
			}
			for _, t := range head.NodeTypes {
				if t.Instead == "" {
					line("  node type %s: no engine left of %s:%s", t.Name, head.Model, head.Version)
					continue
				}
				line("  node type %s: gets %s of %s:%s in place of %s", t.Name, t.Instead, head.Model, head.Version, t.Engine)
			}
		}
		lines = append(lines, printing.NodeLines("  ", r.Nodes)...)
		for _, u := range r.Unread {
			line("  cannot be read: %s@%s: %s", u.Model, u.Release, u.Reason)
		}
	}
	return strings.Join(lines, "\n")
}

// restrictionCommands show and move the list that is in force.
func restrictionCommands(a *program.App) []*cobra.Command {
	return []*cobra.Command{restrictionList(a), restrictionExport(a), restrictionRestore(a), restrictionRenew(a)}
}

func restrictionList(a *program.App) *cobra.Command {
	var environment string
	list := &cobra.Command{
		Use:     "list",
		Short:   "Show restrictions, the affected heads, engines and node types, and quarantines",
		Long:    "Shows the restriction lists in force, and the quarantines of releases and engines that stand.",
		Example: "  mlpromote quarantine list --env prod",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.With(c.Context(), func(i *wiring.Instance) error {
				all, err := restricter(i).List(c.Context(), environment)
				if err != nil {
					return err
				}
				standing, err := quarantiner(a, i, make(map[approver.Unread]bool)).Standing(c.Context(), environment)
				if err != nil {
					return err
				}
				lists := make([]listed, 0, len(all))
				for _, r := range all {
					of := slices.DeleteFunc(slices.Clone(standing), func(q approver.Quarantined) bool { return q.Environment != r.Environment })
					lists = append(lists, listed{r, of})
				}
				return a.UI.Result(restrictedText(all)+quarantinesText(standing), lists)
			})
		},
	}
	list.Flags().StringVar(&environment, "env", "", "environment (default: all)")
	return list
}

// listed is what is restricted in an environment, and in quarantine there.
type listed struct {
	approver.Restricted
	Quarantines []approver.Quarantined `json:"quarantines,omitempty"`
}

// quarantinesText is a table of the quarantines that stand.
func quarantinesText(all []approver.Quarantined) string {
	if len(all) == 0 {
		return ""
	}
	rows := [][]string{{"IN QUARANTINE", "SUBJECT", "SINCE", "REASON"}}
	for _, q := range all {
		since := "-"
		if !q.Since.IsZero() {
			since = q.Since.UTC().Format(time.DateOnly)
		}
		rows = append(rows, []string{fmt.Sprintf("%s/%s:%s", q.Environment, q.Model, q.Version), q.Label, since, q.Reason})
	}
	return "\n\n" + ui.Table(rows)
}

func restrictionExport(a *program.App) *cobra.Command {
	var environment, out string
	export := &cobra.Command{
		Use:     "export --env ENV -o FILE",
		Short:   "Write the signed restriction list of an environment to a file",
		Long:    "Writes the list in force as a sigstore bundle. mlpromote trust DIR --restrictions FILE checks a pulled folder by it.",
		Example: "  mlpromote quarantine export --env prod -o restrictions.sigstore.json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.With(c.Context(), func(i *wiring.Instance) error { return exportRestrictions(c.Context(), a, i, environment, out) })
		},
	}
	export.Flags().StringVar(&environment, "env", "", "environment")
	export.Flags().StringVarP(&out, "out", "o", "", "file to write")
	command.Required(export, "env", "out")
	return export
}

func restrictionRestore(a *program.App) *cobra.Command {
	var environment string
	restore := &cobra.Command{
		Use:   "restore FILE --env ENV",
		Short: "Put an exported restriction list in force, or back in its place",
		Long: `Stores a list that the history names and that was lost, or puts the next list in force that
somebody signed elsewhere. An older list is refused.`,
		Example: "  mlpromote quarantine restore restrictions.sigstore.json --env prod",
		Args:    command.Exactly("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.With(c.Context(), func(i *wiring.Instance) error {
				bundle, err := readRestrictions(args[0])
				if err != nil {
					return err
				}
				if _, err := i.Restrict(c.Context(), environment, bundle); err != nil {
					return err
				}
				all, err := restricter(i).List(c.Context(), environment)
				return errors.Join(err, a.UI.Result(restrictedText(all), all))
			})
		},
	}
	restore.Flags().StringVar(&environment, "env", "", "environment")
	command.Required(restore, "env")
	return restore
}

func restrictionRenew(a *program.App) *cobra.Command {
	var environment, reason string
	renew := &cobra.Command{
		Use:   "renew",
		Short: "Sign the restriction lists in force again, with your own key",
		Long: `Do this when the key that signed a list was revoked: restrictions that it lifted are in force again
until another approver decides. Lift what must not be.`,
		Example: `  mlpromote quarantine renew --env prod --reason "the key of the last list was stolen"`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.With(c.Context(), func(i *wiring.Instance) error {
				return restrict(c.Context(), a, i, approver.Change{Environment: environment, Reason: reason, Again: true})
			})
		},
	}
	renew.Flags().StringVar(&environment, "env", "", "environment (default: all)")
	renew.Flags().StringVar(&reason, "reason", "", "why; stays in the list")
	command.Required(renew, "reason")
	return renew
}

// exportedRestrictions is the answer of quarantine export.
type exportedRestrictions struct {
	File        string          `json:"file"`
	Environment string          `json:"environment"`
	Counter     int64           `json:"counter"`
	Digest      registry.Digest `json:"digest"`
}

// exportRestrictions writes the signed restriction list in force in an environment to a file.
func exportRestrictions(ctx context.Context, a *program.App, i *wiring.Instance, environment, file string) error {
	signed, err := i.Restrictions(ctx, environment)
	if err != nil {
		return err
	}
	if signed.Digest == "" {
		return registry.Errorf(registry.CodeNotFound, "%s has no restriction list", environment)
	}
	if err := atomicfile.Write(file, signed.Bundle, 0o644); err != nil {
		return err
	}
	return a.UI.Result(file, exportedRestrictions{file, environment, signed.List.Counter, signed.Digest})
}

// readRestrictions reads a file with a signed list.
func readRestrictions(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "restriction list: %w", err)
	}
	if info.Size() > evidence.MaxRestrictionBundle {
		return nil, registry.Errorf(registry.CodeInvalid,
			"restriction list %s: %d bytes, want at most %d", file, info.Size(), evidence.MaxRestrictionBundle)
	}
	return os.ReadFile(file)
}
