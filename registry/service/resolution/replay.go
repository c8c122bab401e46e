package resolution

import (
	"context"
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/service/documents"
	"mlpromote.dev/mlpromote/registry/service/lookup"
)

// Replayed is what other environments would decide about a current head.
type Replayed struct {
	Head history.Head `json:"head"`
	// Standing is the decision whether the head could still be resolved and pulled.
	Standing policy.Decision `json:"standing"`
	// Admission is the decision whether the release would be promoted. It does not affect nodes.
	Admission policy.Decision `json:"admission"`
	// Lost are the engines that nodes get today but would no longer get.
	Lost []RejectedEngine `json:"lost,omitempty"`
}

// RejectedEngine is an engine that nodes would no longer get.
type RejectedEngine struct {
	Engine  registry.Digest `json:"engine"`
	Label   string          `json:"label"`
	Reasons []string        `json:"reasons"`
}

// Replay returns what s would decide about the heads of protected environments, compared with
// today, which has the same catalog and content. It changes nothing. An environment without protection, in s
// or in today, gives every engine to nodes there.
func Replay(ctx context.Context, s *backend.Backend, today *backend.Backend) ([]Replayed, error) {
	heads, err := s.Catalog.Heads(ctx, "", "")
	if err != nil {
		return nil, err
	}
	var all []Replayed
	for _, head := range heads {
		before, _ := today.Find(head.Environment)
		after, err := s.Find(head.Environment)
		if err == nil && !before.Protected() && !after.Protected() {
			continue
		}
		replayed := Replayed{Head: head}
		if err != nil {
			replayed.Standing = absent(err)
			replayed.Admission = replayed.Standing
		}
		release, err := lookup.Release(ctx, today, head.Environment, head.Model, string(head.Release))
		if err == nil {
			err = replay(ctx, s, today, before, after, release, &replayed)
		}
		if err != nil {
			return nil, registry.Errorf(registry.CodeOf(err), "head of %s in %s: %w", head.Model, head.Environment, err)
		}
		all = append(all, replayed)
	}
	return all, nil
}

// absent returns the decision of a configuration without the environment.
func absent(err error) policy.Decision {
	return policy.Decision{
		Requirements: []policy.Requirement{{Name: "environment", Subject: "release", Detail: err.Error()}},
	}
}

func replay(
	ctx context.Context, s *backend.Backend,
	today *backend.Backend,
	before, after policy.Environment,
	r artifact.Release,
	into *Replayed,
) error {
	usedToBe, _, err := usableEngines(ctx, today, before, r)
	if err != nil {
		return err
	}
	var usable []string
	reasons := map[string][]string{}
	if after.Name != "" {
		if usable, reasons, err = usableEngines(ctx, s, after, r); err != nil {
			return err
		}
	}
	for _, e := range r.Engines {
		if slices.Contains(usedToBe, e.Label()) && !slices.Contains(usable, e.Label()) {
			into.Lost = append(into.Lost, RejectedEngine{e.Digest, e.Label(), reasons[e.Label()]})
		}
	}
	if !after.Protected() {
		return nil
	}
	resource := s.Resource(after.Name, r.Model)
	there, err := lookup.Evidence(ctx, s, registry.Repository(after.Name, r.Model), resource, r)
	if err != nil {
		return err
	}
	restrictions, err := documents.RestrictionsIn(ctx, s, after.Name)
	if err != nil {
		return err
	}
	into.Standing = policy.CheckStanding(resource, r, there.Claims, restrictions)
	here, err := lookup.Evidence(ctx, s, registry.Repository(after.From, r.Model), resource, r)
	if err != nil {
		return err
	}
	demands := after.Policy()
	demands.Promotion = policy.PromotionContext{Replay: true, Resource: resource, Now: s.Now(), Restrictions: restrictions}
	if demands.NeedsNodeTypes(r) {
		if demands.Promotion.NodeTypes, _, err = lookup.KnownNodeTypes(ctx, s); err != nil {
			return err
		}
	}
	into.Admission = demands.Check(r, lookup.Union(here.Claims, there.Claims))
	return nil
}

// usableEngines lists the engines of a release that an environment gives to nodes, by label, and the
// reasons why it refuses the others.
func usableEngines(
	ctx context.Context, s *backend.Backend,
	e policy.Environment,
	r artifact.Release,
) (given []string, reasons map[string][]string, err error) {
	reasons = make(map[string][]string)
	standing, _, err := engineChecks(ctx, s, e, r)
	if err != nil {
		return nil, nil, err
	}
	for _, engine := range r.Engines {
		refused := ratedEngine{engine, standing(engine)}.refused()
		if len(refused) == 0 {
			given = append(given, engine.Label())
		}
		reasons[engine.Label()] = append(reasons[engine.Label()], refused...)
	}
	return given, reasons, nil
}

// Refused reports whether the head could no longer be used.
func (r Replayed) Refused() bool { return len(r.Standing.Unmet()) > 0 }

// Reasons returns why the head could not be used and why it would not be promoted, one line per
// reason.
func (r Replayed) Reasons() []string {
	var lines []string
	for _, u := range r.Standing.Unmet() {
		lines = append(lines, fmt.Sprintf("would not be given to nodes: %s of %s: %s", u.Name, u.Subject, u.Detail))
	}
	for _, u := range r.Admission.Unmet() {
		lines = append(lines, fmt.Sprintf("would not be promoted: %s of %s: %s", u.Name, u.Subject, u.Detail))
	}
	for _, l := range r.Lost {
		lines = append(lines, l.Label+" is given to nodes today, but would no longer be")
	}
	return lines
}
