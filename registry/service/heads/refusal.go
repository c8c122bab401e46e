package heads

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// CheckDecision refuses a release for the requirements that a decision found unmet.
func CheckDecision(environment string, d policy.Decision) error {
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

// CheckHold refuses to move a head that people hold.
func CheckHold(head history.Head) error {
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

// CheckSeen compares a head with the one that a caller saw when they decided. Errors: CodeConflict.
func CheckSeen(seen *registry.Digest, environment, model string, now history.Head) error {
	if seen == nil || *seen == now.Release {
		return nil
	}
	there := "nothing"
	if now.Release != "" {
		there = fmt.Sprintf("%s (%s)", now.Version, now.Release)
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeConflict, "%s has %s of %s, which is not what you saw when you decided", environment, there, model),
		"look at what is there now, and decide again")
}

// HeadChanged returns the error that the head changed since the request.
func HeadChanged(asked, now history.Head) error {
	return registry.WithHint(
		registry.Errorf(
			registry.CodeConflict,
			"%s in %s was at %s (hold %q) at the time of the request, but is now at %s (hold %q): another request changed it",
			asked.Model,
			asked.Environment,
			asked.Version,
			asked.Hold,
			now.Version,
			now.Hold,
		),
		"check the new head and try again",
	)
}

// CheckVersion refuses a version if its tag names another release in the destination.
func CheckVersion(ctx context.Context, s *backend.Backend, to policy.Environment, r artifact.Release) error {
	if to.External() {
		return tagsTaken(ctx, s, to, r)
	}
	there, err := s.Content.Release(ctx, registry.Repository(to.Name, r.Model), r.Tag())
	if registry.HasCode(err, registry.CodeNotFound) {
		return nil
	}
	if err == nil && there.Digest != r.Digest {
		return taken(to, r, there.Digest)
	}
	return err
}

// taken returns the error that the version exists with another digest.
func taken(to policy.Environment, r artifact.Release, other registry.Digest) error {
	return registry.Errorf(registry.CodePolicy,
		"version %s of %s exists in %s with another digest (%s): choose a new version",
		r.Tag(), r.Model, to.Name, other)
}

// tagsTaken refuses a version that the history knows with another digest, or one of whose tags
// names another digest in the other registry. Nothing prevents other clients from moving or
// deleting tags there.
func tagsTaken(ctx context.Context, s *backend.Backend, to policy.Environment, r artifact.Release) error {
	events, err := s.History(ctx,
		history.HistoryQuery{Environment: to.Name, Model: r.Model, Kind: history.EventPromote})
	if err != nil {
		return err
	}
	for _, e := range events {
		if e.Version == r.Tag() && e.Release != r.Digest {
			return taken(to, r, e.Release)
		}
	}
	tags := r.Tags()
	for _, tag := range mirrorOrder(tags) {
		have, err := mirrored(ctx, s, registry.Repository(to.Name, r.Model), tag)
		switch {
		case err != nil:
			return err
		case have == "" || have == tags[tag] || !immutable(to, tag):
		case tag == r.Tag():
			return taken(to, r, have)
		default:
			return registry.Errorf(registry.CodePolicy,
				"tag %s of %s on %s names another digest (%s): choose a new version", tag, registry.Repository(to.Name, r.Model), to.Registry, have)
		}
	}
	return nil
}
