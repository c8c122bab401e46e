package service_test

import (
	"context"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
)

// operation is something that is asked of a registry.
type operation struct {
	name string
	head string // the environment whose head or hold it changes; "": none
	run  func(t testing.TB, ctx context.Context, a *arena, s *service.Service) answer
	// model does the same to a model, and says what the answer should be. It is told what it
	// was, for where several would be right.
	model func(m *model, got string) string
}

// answer is what an operation came to.
type answer struct {
	said     string // "ok", "ok 1.2.0", "already 1.2.0", or the code of an error
	err      error
	evidence registry.Digest                  // that was attached
	restored *arena                           // from a backup
	pushed   map[registry.Digest]bool         // that is in the registry now; true: a manifest
	at       struct{ environment, in string } // the repository that it was pushed to
}

// said gives the answer of an operation that gives nothing but an error.
func said(err error, otherwise string) answer {
	if err != nil {
		return answer{said: string(registry.CodeOf(err)), err: err}
	}
	return answer{said: otherwise}
}

// promotion is the answer of an operation that moves a head.
func (a *arena) promotion(p api.Promotion, err error) answer {
	word := map[bool]string{true: "already ", false: "ok "}[p.Unchanged]
	return said(err, word+a.names.versions[p.Release])
}

func promote(to, version string) operation {
	return operation{"promote " + version + " to " + to, to,
		func(_ testing.TB, ctx context.Context, a *arena, s *service.Service) answer {
			return a.promotion(s.Promote(ctx, api.PromoteRequest{Model: registrytest.Model, To: to, Ref: version, Downgrade: true}))
		},
		func(m *model, _ string) string { return m.promote(to, version) }}
}

func rollback(environment, version, reason string) operation {
	return operation{"roll back " + environment + " to " + version, environment,
		func(_ testing.TB, ctx context.Context, a *arena, s *service.Service) answer {
			return a.promotion(s.Rollback(ctx, api.RollbackRequest{
				Environment: environment, Model: registrytest.Model, Version: version, Reason: reason}))
		},
		func(m *model, _ string) string { return m.rollback(environment, version, reason) }}
}

func setHold(environment, reason string) operation {
	return operation{"hold " + environment, environment,
		func(_ testing.TB, ctx context.Context, _ *arena, s *service.Service) answer {
			return said(s.SetHold(ctx, environment, registrytest.Model, reason), "ok")
		},
		func(m *model, _ string) string { return m.hold(environment, "hold-set", reason) }}
}

func liftHold(environment string) operation {
	return operation{"lift the hold of " + environment, environment,
		func(_ testing.TB, ctx context.Context, _ *arena, s *service.Service) answer {
			return said(s.ReleaseHold(ctx, api.HoldRelease{Environment: environment, Model: registrytest.Model, Reason: "mended"}), "ok")
		},
		func(m *model, _ string) string { return m.hold(environment, "hold-release", "mended") }}
}

func publish(version string) operation {
	return operation{"publish " + version, "staging",
		func(_ testing.TB, ctx context.Context, a *arena, s *service.Service) answer {
			_, err := s.Publish(ctx, api.Publication{Model: registrytest.Model, Release: a.names.releases[version].Digest})
			return said(err, "ok")
		},
		func(m *model, _ string) string { return m.publish(version) }}
}

// attach attaches a fact. Where its release is not promoted yet, it may find that already
// there, if a promotion is at work.
func attach(environment, name string) operation {
	return operation{"attach " + name + " in " + environment, "",
		func(_ testing.TB, ctx context.Context, a *arena, s *service.Service) answer {
			f := a.names.facts[name]
			d, err := s.Attach(ctx, api.Attachment{Environment: environment, Model: registrytest.Model,
				Release: a.names.releases[f.version].Digest, Subject: f.subject, Bundle: f.signed})
			got := said(err, "ok")
			got.evidence, got.at.environment = d, environment
			return got
		},
		func(m *model, got string) string {
			if want := m.attach(environment, name); want == "ok" || got != "ok" {
				return want
			}
			return m.attach("staging", name) // with which all of them have it
		}}
}
