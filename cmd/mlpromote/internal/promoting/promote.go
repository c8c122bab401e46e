package promoting

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/cireport"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/printing"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

func promoteCommand(a *program.App) *cobra.Command {
	var req api.PromoteRequest
	var wait time.Duration
	c := &cobra.Command{
		Use:   "promote [REF]",
		Short: "Promote a verified release to the next environment, byte for byte",
		Long: `Hashes the release again, checks the destination's policy, copies the release and its evidence,
signs a verification summary, and moves the head last. REF defaults to the last build here; without an
environment it is in the one that the destination takes releases from.

If only evidence is missing, such as reports or approvals, promote --wait waits for it and decides again whenever
new evidence arrives, until the time is up. stderr names whose evidence is missing. If the destination gets another release
meanwhile, it ends and promotes nothing: evidence that comes late does not replace a newer head. It does not wait where anything else is in
the way, such as a report that failed, a quarantine or a hold. With --dry-run it waits too, and then shows the decision.

stderr names the engine that each registered node type gets of the release.

A version that is older than the one in the destination is refused: mlpromote rollback goes back, and --downgrade
promotes an older version that is meant.

stdout: the ref in the destination; with --dry-run the requirements that are not met, and the number of those that are. -v lists
these, too; --output markdown writes all for a comment, with the command that meets each. Exit code 4: the policy refuses, also when the time is over.`,
		Example: "  mlpromote promote --dry-run\n  mlpromote promote --dry-run --output markdown >decision.md\n  mlpromote promote --wait 30m\n" +
			"  mlpromote promote --reason 'reads blurred digits'",
		Args:        command.AtMost("REF"),
		Annotations: map[string]string{command.Markdown: "the decision"},
		RunE: func(c *cobra.Command, args []string) error {
			if a.Output.Format == command.Markdown && !req.DryRun {
				return registry.Errorf(registry.CodeInvalid, "--output markdown shows a decision: want --dry-run with it")
			}
			if wait < 0 {
				return registry.Errorf(registry.CodeInvalid, "--wait %s: want a time such as 30m, or 0 for none", wait)
			}
			return promoteWaiting(c.Context(), a, req, wait, args)
		},
	}
	c.Flags().StringVar(&req.From, "from", "", "environment to promote from (default: the only one that fits)")
	c.Flags().StringVar(&req.To, "to", "", "environment to promote to")
	c.Flags().BoolVar(&req.BreakGlass, "break-glass", false,
		"in an emergency, skip unmet requirements that two approvers agreed to skip (mlpromote approve --break-glass)")
	c.Flags().BoolVar(&req.Downgrade, "downgrade", false, "replace a newer version; else that is refused, since a rollback goes back")
	c.Flags().StringVar(&req.Reason, "reason", "", "why, for the history (optional)")
	c.Flags().DurationVar(&wait, "wait", 0, "how long to wait for missing evidence, such as 30m")
	c.Flags().BoolVar(&req.DryRun, "dry-run", false, "print every requirement with its state, change nothing")
	return c
}

func promote(ctx context.Context, a *program.App, i *wiring.Instance, req api.PromoteRequest, w *waiting, args []string) error {
	if w.first != nil {
		req = *w.first
	} else {
		ref, err := toPromote(a, i, req, args)
		if err != nil {
			return err
		}
		req.Model, req.Ref = ref.Model, ref.TagOrDigest()
		req.From = cmp.Or(req.From, ref.Environment)
	}
	before := newestEvent(ctx, i, req.Model)
	promotion, err := i.Promote(ctx, req)
	if w.overtaken = req.Replaces != nil && registry.HasCode(err, registry.CodeConflict) && headMoved(ctx, i, req); w.overtaken {
		return registry.Errorf(registry.CodeConflict, "the head of %s moved while promote --wait waited: %w", req.To, err)
	}
	if err != nil && w.goesOn(ctx, a, i, promotion, err) {
		w.model, w.before = req.Model, before
		req.Ref, req.From, req.To = string(promotion.Release), cmp.Or(req.From, promotion.From), cmp.Or(req.To, promotion.Environment)
		if req.Replaces == nil {
			req.Replaces = headSeen(promotion)
		}
		w.first = &req
		return nil
	}
	if err == nil { // else it says both
		tellSkipped(a, req, promotion)
		tellHead(a, promotion)
		tellLost(ctx, a, i, promotion)
		tellOrder(ctx, a, i, promotion)
	}
	tellBuild(ctx, a, i, promotion)
	tellNodes(a, promotion)
	for _, w := range promotion.Decision.Withheld {
		a.UI.Note("warning: %s", w)
	}
	if n := promotion.Decision.IgnoredCount; n > 0 {
		a.UI.Note("ignored and not copied: %s; mlpromote inspect has the reasons", registry.Count(n, "piece of evidence", "pieces of evidence"))
	}
	if req.DryRun && promotion.Model != "" {
		reasons := obstacles(ctx, i, promotion, err)
		if out := a.UI.Result(decisionText(a, promotion, err), movement{Promotion: promotion, Reasons: reasons}); out != nil {
			return out
		}
		tellPages(a, reasons)
		return shown(a, promotion, err)
	}
	if err != nil {
		refused(a, promotion, obstacles(ctx, i, promotion, err))
		return err
	}
	tellCredentials(a, i, promotion.From, promotion.Environment)
	return promoted(a, i, promotion)
}

// shown is the error of a decision whose requirements are printed: it does not repeat them.
func shown(a *program.App, p api.Promotion, refused error) error {
	unmet := len(p.Decision.Unmet())
	if a.UI.JSON || unmet == 0 || !registry.HasCode(refused, registry.CodePolicy) {
		return refused
	}
	short := registry.Errorf(registry.CodePolicy, "%s does not take this release: %s not met", p.Environment, registry.Count(unmet, "requirement"))
	if p.Unchanged {
		short = registry.Errorf(registry.CodePolicy, "%s is already at %s of %s, but would no longer accept it: %s not met",
			p.Environment, p.Version, p.Model, registry.Count(unmet, "requirement"))
	}
	for _, hint := range registry.Hints(refused) {
		short = registry.WithHint(short, "%s", hint)
	}
	return short
}

// toPromote is the release that is promoted: by a ref, or by a model in the environment that the destination takes
// releases from.
func toPromote(a *program.App, i *wiring.Instance, req api.PromoteRequest, args []string) (registry.Ref, error) {
	from, _, err := i.Envs.Edge(req.From, req.To)
	if err != nil { // the ref must say which environment is meant
		ref, wrong := a.Reference(i, args)
		if _, unknown := i.Envs.Find(ref.Environment); wrong == nil && unknown != nil {
			return ref, err
		}
		return ref, wrong
	}
	return a.ReferenceIn(i, from.Name, args)
}

// tellSkipped says what a break-glass promotion skips, or that it has nothing to skip.
func tellSkipped(a *program.App, req api.PromoteRequest, p api.Promotion) {
	switch s := p.Decision.Skipped; {
	case s != nil:
		a.UI.Note("warning: %s", s)
	case req.BreakGlass:
		a.UI.Note("nothing is skipped: all requirements are met")
	}
}

// tellHead says where the destination's head is, if the promotion need not move it, and that
// it is held.
func tellHead(a *program.App, p api.Promotion) {
	if p.Unchanged {
		a.UI.Note("%s is at %s already", p.Environment, p.Version)
	}
	if p.Hold != "" {
		a.UI.Note("%s in %s is held: %s; other releases wait until mlpromote hold release %s --env %s --reason TEXT",
			p.Model, p.Environment, p.Hold, p.Model, p.Environment)
	}
}

// tellLost says which engines the destination's head had and the promoted release does not have:
// machines that ran them get another one, or none. Without the releases it says nothing.
func tellLost(ctx context.Context, a *program.App, i *wiring.Instance, p api.Promotion) {
	if p.Unchanged || p.Previous == "" {
		return
	}
	before, err := i.Release(ctx, p.Environment, p.Model, string(p.Previous))
	if err != nil {
		return
	}
	after, err := i.Release(ctx, p.From, p.Model, string(p.Release))
	if err != nil {
		return
	}
	for _, e := range before.Engines {
		has := func(other artifact.Engine) bool { return other.Label() == e.Label() }
		if !slices.ContainsFunc(after.Engines, has) {
			a.UI.Note("%s of %s %s is not in %s: machines that resolve to it get another engine, or none", e.Label(), p.Environment, before.Version, p.Version)
		}
	}
}

// tellBuild repeats the warnings of the build of the promoted release: about its labels, and about engines of its spec that it was made
// without. Without its evidence it prints nothing.
func tellBuild(ctx context.Context, a *program.App, i *wiring.Instance, p api.Promotion) {
	if p.Release == "" {
		return
	}
	release, err := i.Release(ctx, p.From, p.Model, string(p.Release))
	if err != nil {
		return
	}
	claims, _, err := i.Claims(ctx, p.From, release)
	if err != nil {
		return
	}
	for _, warning := range inspection.LabelWarnings(release, claims) {
		a.UI.Note("warning: %s", warning)
	}
	if left := evidence.LeftOutOf(release, claims); len(left) > 0 {
		a.UI.Note("%s %s was made without %s of its spec: %s", p.Model, p.Version, registry.Count(len(left), "engine"), printing.LeftOutLabels(left))
	}
}

// maxNodes is how many node types a promotion names on a terminal.
const maxNodes = 20

// tellOrder says in which order nodes get the engines of the release, if there are no node types. Without the release it says nothing.
func tellOrder(ctx context.Context, a *program.App, i *wiring.Instance, p api.Promotion) {
	if len(p.NodesGet) > 0 {
		return
	}
	if release, err := i.Release(ctx, p.From, p.Model, string(p.Release)); err == nil {
		a.UI.Note("%s", ui.Layout(printing.NodesGet(release, nil)))
	}
}

// tellNodes says which engine each node type gets of the release.
func tellNodes(a *program.App, p api.Promotion) {
	for _, warning := range p.Warnings {
		a.UI.Note("warning: %s", warning)
	}
	for _, n := range p.NodesGet[:min(maxNodes, len(p.NodesGet))] {
		a.UI.Note("nodes get: %s", n)
	}
	if more := len(p.NodesGet) - maxNodes; more > 0 {
		a.UI.Note("nodes get: see also %s: --output json has all", registry.Count(more, "other node type"))
	}
}

// tellCredentials says whose credentials were used on the registries of environments, where
// it was this process that went there and not a service.
func tellCredentials(a *program.App, i *wiring.Instance, environments ...string) {
	if i.Local == nil {
		return
	}
	for _, environment := range environments {
		if host := i.HostOf(environment); host != "" {
			a.UI.Note("%s is on registry %s (credential: %s)", environment, host, i.Content.UsedFor(host))
		}
	}
}

func promoted(a *program.App, i *wiring.Instance, p api.Promotion) error {
	ref := registry.Ref{Host: i.HostOf(p.Environment), Environment: p.Environment, Model: p.Model, Tag: p.Version, Digest: p.Release}
	return a.UI.Result(ui.Plain(ref.String()), movement{Ref: ref.String(), Promotion: p})
}

// obstacles are what is in the way of a promotion, each with the page of its subject where the registry has pages. Without the
// release there are none.
func obstacles(ctx context.Context, i *wiring.Instance, p api.Promotion, refused error) []api.Obstacle {
	if p.Model == "" || p.Release == "" {
		return nil
	}
	release, err := i.Release(ctx, p.From, p.Model, string(p.Release))
	if err != nil {
		return nil
	}
	check, err := api.CheckPromotion(release, p.From, p.Environment, i.Pages, p, refused)
	if err != nil {
		return nil
	}
	return check.Reasons
}

// maxPages is how many pages a refusal names on a terminal.
const maxPages = 3

// tellPages names the pages of what is in the way.
func tellPages(a *program.App, reasons []api.Obstacle) {
	var pages []string
	for _, o := range reasons {
		if o.URL != "" && !slices.Contains(pages, o.URL) {
			pages = append(pages, o.URL)
		}
	}
	for _, page := range pages[:min(maxPages, len(pages))] {
		a.UI.Note("see %s", page)
	}
	if more := len(pages) - maxPages; more > 0 {
		a.UI.Note("see also %s: --output json has all", registry.Count(more, "other page"))
	}
}

// movement is a head that moved, or with --dry-run would.
type movement struct {
	Ref string `json:"ref,omitempty"` // in the destination; absent for a dry run of promote
	api.Promotion
	Reasons []api.Obstacle `json:"reasons,omitempty"` // why a promotion is refused
}

// refused keeps what is known of a promotion or rollback that was refused: the decision, and the pages to see.
func refused(a *program.App, p api.Promotion, reasons []api.Obstacle) {
	if p.Model != "" {
		a.UI.Partial(movement{Promotion: p, Reasons: reasons})
	}
	tellPages(a, reasons)
}

// decisionText is a decision, and refused the error with which the promotion would end.
func decisionText(a *program.App, p api.Promotion, refused error) string {
	if a.Output.Format != command.Markdown {
		return requirementsText(p.Decision, a.Output.Verbose)
	}
	why := ""
	if refused != nil {
		why = refused.Error()
	}
	return cireport.Decision(p, why)
}

// promoteWaiting promotes, and while evidence is all that is missing, again when the model has new events, until the
// time is over. The answer is that of the last look. Between two looks the registry is closed, so that others who want a
// data directory for themselves need not wait.
func promoteWaiting(ctx context.Context, a *program.App, req api.PromoteRequest, wait time.Duration, args []string) error {
	w := &waiting{deadline: time.Now().Add(wait)}
	for {
		w.again = false
		err := a.With(ctx, func(i *wiring.Instance) error { return promote(ctx, a, i, req, w, args) })
		unreachable := !w.overtaken && w.told != "" && registry.ExitCode(err) == registry.ExitAgain && ctx.Err() == nil && time.Until(w.deadline) > 0
		if !w.again && !unreachable {
			return err
		}
		if err := untilEvent(ctx, a, w); err != nil {
			return err
		}
	}
}
