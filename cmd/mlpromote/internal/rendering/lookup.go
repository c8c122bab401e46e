package rendering

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// lookup answers markers from a registry. Each subject is asked about once, so that all places of one run agree.
type lookup struct {
	registry    *wiring.Instance
	environment string
	known       map[Marker]Target
}

// target is the release or engine that a marker means, which may be used now. Errors: CodeTrust if it may not.
func (l *lookup) target(ctx context.Context, m Marker) (Target, error) {
	if m.Environment == "" {
		m.Environment = l.environment
	}
	if found, ok := l.known[m.subject()]; ok {
		return found, nil
	}
	found, err := l.find(ctx, m)
	if err == nil {
		found.Host, found.Environment, found.Model = l.registry.HostOf(m.Environment), m.Environment, m.Model
		l.known[m.subject()] = found
	}
	return found, err
}

func (l *lookup) find(ctx context.Context, m Marker) (Target, error) {
	if m.NodeType != "" {
		return l.resolved(ctx, m)
	}
	r, err := l.registry.Release(ctx, m.Environment, m.Model, "")
	if err != nil {
		return Target{}, err
	}
	target := Target{Version: r.Tag(), Digest: r.Digest}
	var engine *artifact.Engine
	if m.Engine != "" {
		if engine, err = engineOf(r, m.Engine); err != nil {
			return Target{}, err
		}
		target.Digest, target.Image = engine.Digest, engine.Image.Digest
	}
	return target, l.usable(ctx, m, r, engine)
}

// resolved is the engine that nodes of a type get. Resolve itself refuses what may not be used.
func (l *lookup) resolved(ctx context.Context, m Marker) (Target, error) {
	node, err := l.registry.NodeTypes.Get(ctx, m.NodeType)
	if registry.HasCode(err, registry.CodeNotFound) {
		return Target{}, registry.WithHint(registry.Errorf(registry.CodeNotFound, "node type %s is unknown", m.NodeType),
			"mlpromote node-type list shows those that the registry knows")
	}
	if err != nil {
		return Target{}, err
	}
	r, err := l.registry.Resolve(ctx, api.ResolveQuery{Environment: m.Environment, Model: m.Model, Node: node})
	if err != nil {
		return Target{}, err
	}
	return Target{Version: r.Version, Digest: r.Engine.Digest, Image: r.Engine.Image.Digest}, nil
}

func engineOf(r artifact.Release, label string) (*artifact.Engine, error) {
	var labels []string
	for i, e := range r.Engines {
		if e.Label() == label {
			return &r.Engines[i], nil
		}
		labels = append(labels, strconv.Quote(e.Label()))
	}
	return nil, registry.WithHint(registry.Errorf(registry.CodeNotFound, "%s %s has no engine %.200q", r.Model, r.Tag(), label),
		"it has %s", strings.Join(labels, ", "))
}

// usable checks that what a file is to name may be used: by what resolve requires of a promoted release, or of one where
// builds write.
func (l *lookup) usable(ctx context.Context, m Marker, r artifact.Release, engine *artifact.Engine) error {
	all, err := l.registry.Environments(ctx)
	if err != nil {
		return err
	}
	e, err := all.Find(m.Environment)
	if err != nil {
		return err
	}
	claims, _, err := l.registry.Claims(ctx, m.Environment, r)
	if err != nil {
		return err
	}
	restricted, err := l.registry.Restrictions(ctx, m.Environment)
	if err != nil {
		return err
	}
	var errs []error
	for _, unmet := range decide(all.ResourceURI(m.Environment, m.Model), e, r, engine, claims, restricted.Restrictions()).Unmet() {
		errs = append(errs, registry.Errorf(registry.CodeTrust, "%s %s in %s may not be used: %s of %s: %s",
			m.Model, r.Tag(), m.Environment, unmet.Name, unmet.Subject, unmet.Detail))
	}
	return errors.Join(errs...)
}

func decide(resource string, e policy.Environment, r artifact.Release,
	engine *artifact.Engine, claims []evidence.Claim, in restriction.Restrictions) policy.Decision {
	switch {
	case !e.Protected():
		d := policy.Policy{Require: []string{policy.RequireSignature}}.Check(r, claims)
		for _, of := range r.Engines {
			if engine == nil || of.Digest == engine.Digest {
				d.Requirements = append(d.Requirements, policy.CheckRestrictions(in, r, of, claims).Requirements...)
			}
		}
		return d
	case engine != nil:
		return policy.CheckEngineStanding(resource, r, *engine, claims, in)
	default:
		return policy.CheckStanding(resource, r, claims, in)
	}
}
