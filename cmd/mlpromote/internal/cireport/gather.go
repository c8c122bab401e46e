package cireport

import (
	"context"
	"fmt"
	"time"

	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/parts"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/policy"
)

// Of decides about the promotion of a release without carrying it out, and reads what it would change. Errors: those of
// a promotion but for a refusal by the policy, which is a report.
func Of(ctx context.Context, i *wiring.Instance, ref registry.Ref, to string) (Report, error) {
	found, err := inspection.Of(ctx, &i.Registry, ref)
	if err != nil {
		return Report{}, err
	}
	// The digest is what was inspected: a tag that moves meanwhile does not mix two releases.
	asked := api.PromoteRequest{Model: ref.Model, Ref: string(found.Release.Digest), From: ref.Environment, To: to, DryRun: true}
	promotion, err := i.Promote(ctx, asked)
	if err != nil && (!registry.HasCode(err, registry.CodePolicy) || promotion.Model == "") {
		return Report{}, err
	}
	g := gathering{i: i, ref: ref, found: found, promotion: promotion}
	g.Report = Report{
		Release: found.Ref, Model: ref.Model, Version: found.Release.Tag(), Destination: promotion.Environment, Unchanged: promotion.Unchanged,
		Allowed: promotion.Decision.Allowed() && err == nil, LeftOut: found.LeftOut, Steps: steps(found), Engines: []Engine{},
	}
	g.Page = g.page("release")
	if from := found.Origin; from != nil && from.CI != nil {
		if g.Run = from.CI.Run(); g.Run == "" {
			g.Run, g.RunClaimed = from.CI.ClaimedRun(), from.CI.ClaimedRun() != ""
		}
	}
	g.Requirements = withRemedies(promotion, ref.Environment+"/"+ref.Model+":"+found.Release.Tag())
	for n := range g.Requirements {
		g.Requirements[n].Page = g.page(g.Requirements[n].Subject)
	}
	g.current(ctx)
	g.engines(ctx)
	g.builds(ctx)
	g.nodes(ctx)
	return g.Report, nil
}

// withRemedies adds to each requirement what meets it. ref names the release.
func withRemedies(p api.Promotion, ref string) []Requirement {
	all := []Requirement{}
	for _, req := range p.Decision.Requirements {
		all = append(all, Requirement{Requirement: req, Command: req.Command(ref, p.Environment)})
	}
	return all
}

// gathering is a report that is being made.
type gathering struct {
	Report
	i         *wiring.Instance
	ref       registry.Ref
	found     inspection.Result
	promotion api.Promotion
	now       *artifact.Release // that the destination has; nil: none
}

// unknown notes what could not be read. The report then says so, instead of leaving it out.
func (g *gathering) unknown(what string, err error) {
	g.Unknown = append(g.Unknown, fmt.Sprintf("%s: %v", what, err))
}

// page is the address of the page of an engine of the release, by its label, and of the release for any other subject.
func (g *gathering) page(subject string) string {
	if g.i.Pages == "" {
		return ""
	}
	for _, e := range g.found.Engines {
		if e.Label == subject {
			return api.EnginePage(g.i.Pages, g.ref.Model, e.Digest, g.ref.Environment)
		}
	}
	return api.ReleasePage(g.i.Pages, g.ref.Model, g.found.Release.Digest, g.ref.Environment)
}

// current reads what the destination has, and how limits and interface differ from it.
func (g *gathering) current(ctx context.Context) {
	to := g.promotion.Environment
	now, err := g.i.Release(ctx, to, g.ref.Model, "")
	switch {
	case registry.HasCode(err, registry.CodeNotFound):
		return
	case err != nil:
		g.unknown("the release that "+to+" has now", err)
		return
	}
	g.now, g.Current = &now, now.Tag()
	if now.Digest == g.found.Release.Digest {
		return
	}
	compared, err := parts.Compare(g.i.Store)(ctx,
		policy.Located{Repository: registry.Repository(g.ref.Environment, g.ref.Model), Release: g.found.Release},
		policy.Located{Repository: registry.Repository(to, g.ref.Model), Release: now})
	if err != nil {
		g.unknown("how limits and interface differ from "+now.Tag(), err)
		return
	}
	g.Looser, g.Interface = compared.Looser, compared.Interface
}

// engines puts each engine beside the one of its label in the destination.
func (g *gathering) engines(ctx context.Context) {
	old := map[string]artifact.Engine{}
	if g.now != nil {
		for _, e := range g.now.Engines {
			old[e.Label()] = e
		}
	}
	for _, from := range g.found.Engines {
		e := Engine{Label: from.Label, Page: g.page(from.Label), Digest: from.Digest, Bytes: g.size(ctx, g.ref.Environment, from.Digest)}
		if was, ok := old[e.Label]; ok {
			e.Was, e.WasBytes = was.Digest, g.size(ctx, g.promotion.Environment, was.Digest)
			delete(old, e.Label)
		}
		e.measured(from)
		g.Engines = append(g.Engines, e)
	}
	if g.now == nil {
		return
	}
	for _, e := range g.now.Engines { // in the order of the release
		if _, left := old[e.Label()]; left {
			g.Gone = append(g.Gone, e.Label())
		}
	}
}

// size is how many bytes the files of an engine have; 0 where that is not known.
func (g *gathering) size(ctx context.Context, environment string, engine registry.Digest) int64 {
	e, err := g.i.Engine(ctx, environment, g.ref.Model, engine)
	if err != nil {
		g.unknown("the size of "+string(engine), err)
	}
	return e.Bytes
}

// measured takes what the newest reports of an engine say.
func (e *Engine) measured(from inspection.Engine) {
	if p := from.Parity; p != nil {
		e.Verdict, e.Checks, e.Accuracy, e.Against = p.Verdict, p.Checks.OfCases(), p.Accuracy, p.Current
		e.Tightest, e.Margin = tightest(e.Checks)
		for _, reason := range p.Reasons {
			e.Reasons = append(e.Reasons, plain(reason.Message))
		}
	}
	if l := from.Performance; l != nil {
		e.LatencyVerdict, e.Latency, e.Slower = l.Verdict, &l.Latency, l.Ratio
		for _, reason := range l.Reasons {
			e.Reasons = append(e.Reasons, plain(reason.Message))
		}
	}
}

// nodes puts the engine that each node type would get beside the one that it has now.
func (g *gathering) nodes(ctx context.Context) {
	if g.Unchanged {
		return
	}
	g.Unknown = append(g.Unknown, g.promotion.Warnings...)
	for _, n := range g.promotion.NodesGet {
		change := api.NodeChange{Node: "node type " + n.NodeType, To: n.Label, ToEngine: n.Engine}
		if err := g.has(ctx, n.NodeType, &change); err != nil {
			g.unknown(change.Node, err)
			continue
		}
		g.Nodes = append(g.Nodes, change)
	}
}

// has adds the engine that a node type has now.
func (g *gathering) has(ctx context.Context, nodeType string, change *api.NodeChange) error {
	if g.now == nil {
		return nil
	}
	node, err := g.i.NodeTypes.Get(ctx, nodeType)
	if err != nil {
		return err
	}
	was, err := g.i.Resolve(ctx, api.ResolveQuery{Environment: g.promotion.Environment, Model: g.ref.Model, Node: node})
	if err != nil && was.Engine == nil && !refused(err) {
		return err
	}
	if was.Engine != nil {
		change.From, change.FromEngine = was.Engine.Label(), was.Engine.Digest
	}
	return nil
}

// refused reports whether resolve said that there is no engine, rather than failing to say.
func refused(err error) bool {
	return registry.HasCode(err, registry.CodeNoEngine) || registry.HasCode(err, registry.CodePolicy)
}

// steps counts the steps of the build. Provenance of each engine lists those that it needed; shared ones count once. Nil
// where no provenance that counts lists any.
func steps(found inspection.Result) *Steps {
	seen := map[string]bool{}
	var s Steps
	for _, p := range provenances(found.Claims) {
		for _, step := range p.RunDetails.Byproducts {
			key := step.key()
			if key == "" || seen[key] {
				continue
			}
			seen[key] = true
			s.Count++
			if step.Annotations.Cached {
				s.Cached++
			} else {
				s.Elapsed += time.Duration(step.Annotations.Elapsed)
			}
		}
	}
	if s.Count == 0 {
		return nil
	}
	return &s
}
