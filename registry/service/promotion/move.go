package promotion

import (
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service/lookup"
)

// move is a promotion in progress.
type move struct {
	from, to policy.Environment
	release  artifact.Release
	dryRun   bool
	lowers   bool             // a newer version may be replaced
	breaks   bool             // unmet requirements are skipped where approvers agreed to that
	seen     *registry.Digest // the head that the caller wants to replace; nil: any
	reason   string           // of the caller

	// The decision, which may be repeated.
	basis    history.DecisionBasis // of the destination
	accepted []evidence.Claim
	evidence []registry.Digest // accepted evidence, to be copied
	unkept   []evidence.Claim  // of it, what the catalog has to keep and does not
	decision policy.Decision
	already  bool // the head is already at the release
	// standing lists what speaks against an engine in the destination; nil until that is known.
	standing func(artifact.Engine) []policy.Requirement

	// Completed work, which is not repeated.
	rehashed bool
	brought  bool              // evidence that was added after an earlier promotion of the release
	copied   []registry.Digest // evidence in the destination; nil: nothing was copied yet
	summary  summary
}

func (m move) source() string { return registry.Repository(m.from.Name, m.release.Model) }

func (m move) destination() string { return registry.Repository(m.to.Name, m.release.Model) }

// skipped describes what the promotion skips, or is "".
func (m move) skipped() string {
	if m.decision.Skipped == nil {
		return ""
	}
	return m.decision.Skipped.String()
}

// skippedNames lists the requirements that the promotion skips.
func (m move) skippedNames() []string {
	if m.decision.Skipped == nil {
		return nil
	}
	return m.decision.Skipped.Requirements
}

// why is the reason that the history gets, of at most [registry.MaxText] bytes: what the promotion skips, and what its caller
// said. Where both are long, the former is shortened first: the evidence of the approvers has all of it.
func (m move) why() string {
	skipped := m.skipped()
	if m.reason == "" || skipped == "" {
		return skipped + m.reason
	}
	const between, more = "; ", "…"
	if room := max(registry.MaxText-len(between)-len(m.reason), registry.MaxText/2); len(skipped) > room {
		skipped = strings.ToValidUTF8(skipped[:room-len(more)], "") + more
	}
	return registry.PlainText(skipped + between + m.reason)
}

func (m move) intent() history.Intent {
	return history.Intent{Environment: m.to.Name, Model: m.release.Model, From: m.from.Name, Release: m.release.Digest}
}

func (m move) promotion() api.Promotion {
	p := api.Promotion{
		Environment: m.to.Name, From: m.from.Name, Model: m.release.Model, Version: m.release.Tag(),
		Release: m.release.Digest, Previous: m.basis.Head.Release, Decision: m.decision, Unchanged: m.already, Hold: m.basis.Head.Hold,
	}
	if !m.already {
		p.VSA = m.summary.bundles
	}
	return p
}

// weigh decides by the policy of the destination, with all evidence. Only evidence of the source is copied.
func (m *move) weigh(policy policy.Policy, here lookup.ReleaseEvidence, all []evidence.Claim) {
	counted, _ := evidence.Accept(m.release, here.Listed())
	m.evidence, m.unkept = nil, nil
	for _, c := range counted {
		m.evidence = append(m.evidence, c.Bundle)
		if c.Adverse() && !here.Kept[c.Bundle] {
			m.unkept = append(m.unkept, c)
		}
	}
	m.decision = policy.Check(m.release, all)
	m.accepted, _ = evidence.Accept(m.release, all)
}

// summary is a verification summary that was attached in the destination.
type summary struct {
	accepted []registry.Digest // the evidence that the summary lists
	previous registry.Digest   // the head that the summary names
	bundles  []registry.Digest // its manifests, release first; empty if there is no summary yet
	signer   string
	skipped  string // what the summary says was skipped
}
