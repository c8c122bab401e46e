package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
)

// mayStay returns the objections to a release that is already the head.
func mayStay(m move) error {
	err := unmet(m.to.Name, m.decision)
	if err == nil {
		return nil
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeOf(err), "%s is already at %s of %s, but would no longer accept it: %w",
			m.to.Name, m.release.Tag(), m.release.Model, err),
		"mlpromote rollback %s --env %s --reason TEXT goes back to the head before",
		m.release.Model,
		m.to.Name,
	)
}

func unmet(environment string, d policy.Decision) error {
	if d.Allowed() {
		return nil
	}
	unmet := distinctReasons(d)
	var lines []string
	for _, r := range unmet {
		lines = append(lines, fmt.Sprintf("%s of %s: %s", r.Name, r.Subject, registry.PlainText(r.Detail)))
	}
	if len(lines) == 0 {
		lines = append(lines, "its policy has no requirements, so it allows no release")
	}
	refusal := withoutFailing(d, registry.Errorf(registry.CodePolicy,
		"%s does not take this release:\n  %s", environment, strings.Join(lines, "\n  ")))
	for _, hint := range policy.RequirementHints(environment, unmet) {
		refusal = registry.WithHint(refusal, "%s", hint)
	}
	return refusal
}

// distinctReasons lists the unmet requirements, without those that are unmet for the reason of an earlier one: they are met with it.
func distinctReasons(d policy.Decision) []policy.Requirement {
	var distinct []policy.Requirement
	for _, r := range d.Unmet() {
		same := func(other policy.Requirement) bool { return other.Subject == r.Subject && other.Detail == r.Detail }
		if !slices.ContainsFunc(distinct, same) {
			distinct = append(distinct, r)
		}
	}
	return distinct
}

// withoutFailing adds to a refusal how to get a release of the engines that meet the policy, if reports
// about some of the others are all that is in the way.
func withoutFailing(d policy.Decision, refusal error) error {
	var failing, fine []string
	for _, r := range distinctReasons(d) {
		if r.Name != policy.RequireParity && r.Name != policy.RequireRecordedCases || len(r.Evidence) == 0 {
			return refusal
		}
		failing = append(failing, r.Subject)
	}
	for _, r := range d.Requirements {
		if r.Name == policy.RequireParity && !slices.Contains(failing, r.Subject) {
			fine = append(fine, r.Subject)
		}
	}
	if len(failing) == 0 || len(fine) == 0 {
		return refusal
	}
	slices.Sort(failing)
	return registry.WithHint(refusal,
		"%s could be promoted alone: remove the variant or target of %s from the spec, then build and verify; build --keep-going leaves out only what cannot be built",
		registry.Count(len(fine), "engine"), strings.Join(slices.Compact(failing), ", "))
}

func held(head history.Head) error {
	if head.Hold == "" {
		return nil
	}
	return registry.WithHint(
		registry.Errorf(registry.CodePolicy, "%s in %s is held at %s: %s", head.Model, head.Environment, head.Version,
			registry.PlainText(head.Hold)),
		"when the cause is fixed: mlpromote hold release %s --env %s --reason TEXT",
		head.Model,
		head.Environment,
	)
}

// versionTaken refuses a version whose tag names another release in the destination.
func versionTaken(ctx context.Context, s *Backend, m move) error {
	if m.to.External() {
		return tagsTaken(ctx, s, m)
	}
	there, err := s.Content.Release(ctx, m.destination(), m.release.Tag())
	if registry.HasCode(err, registry.CodeNotFound) {
		return nil
	}
	if err == nil && there.Digest != m.release.Digest {
		return m.taken(there.Digest)
	}
	return err
}

// taken returns the error that the version exists with another digest.
func (m move) taken(other registry.Digest) error {
	return registry.Errorf(registry.CodePolicy,
		"version %s of %s exists in %s with another digest (%s): choose a new version",
		m.release.Tag(), m.release.Model, m.to.Name, other)
}

// missingEvidence returns an error for evidence that the history names but that no longer
// exists. With it, the policy might decide otherwise. It ignores events after the basis, since
// that evidence may be newer than what was read.
func missingEvidence(
	ctx context.Context, s *Backend,
	m move,
	q history.HistoryQuery,
	present map[registry.Digest]bool,
) error {
	r := m.release
	q.Model, q.Before = r.Model, m.basis.Seq+1
	events, err := s.History(ctx, q)
	if err != nil {
		return err
	}
	var gone []error
	for _, e := range events {
		if !concerns(e, r) {
			continue
		}
		for _, d := range e.Evidence {
			if !present[d] {
				gone = append(gone, registry.Errorf(registry.CodePolicy,
					"evidence %s (%s about %s) was recorded in history on %s, but is missing in %s: restore it from a backup",
					d, e.PredicateType, e.Subject, e.Time.Format("2006-01-02 15:04:05Z"), e.Environment))
			}
		}
	}
	return errors.Join(gone...)
}

func concerns(e history.Event, r artifact.Release) bool {
	if e.Kind == history.EventAttach {
		_, isEngine := r.Engine(e.Subject)
		return isEngine || e.Subject == r.Digest
	}
	return e.Kind == history.EventPromote && e.Release == r.Digest
}
