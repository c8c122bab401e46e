package policy

import (
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// Policy is what an environment requires of a release. The zero Policy allows nothing.
type Policy struct {
	Require []string
	// Operators are the digests of the operator libraries that engines may carry. A Policy from
	// [Environment.Policy] refuses all others.
	Operators []registry.Digest
	// Accuracy and Ceilings are those of an [Environment].
	Accuracy  *AccuracyRequirement
	Ceilings  Ceilings
	CIJob     *CIJob // that must have built; nil asks for none
	Approvals ApprovalRule
	// Reports says how fresh reports must be, and of how many verifiers.
	Reports ReportRule
	// Coverage says which node types must get an engine that was shown on them.
	Coverage CoverageRule
	// Served says through which model server engines must have passed, too.
	Served ServedRule
	// Freeze are the windows in which nothing is promoted.
	Freeze []Freeze
	// BreakGlass are the requirements that two approvers may skip in an emergency, of [Skippable].
	BreakGlass []string
	// Promotion is the promotion that the policy decides about. Without it, whatever depends on it is
	// refused.
	Promotion PromotionContext
}

// PromotionContext is what a [Policy] knows of the promotion that it decides about, beside the
// release and its evidence.
type PromotionContext struct {
	// Environment is where the release is to be promoted to, and Head the release that it has; empty
	// if it has none. Reports that compared with another release do not count.
	Environment string
	Head        registry.Digest
	// HeadVersion is the tag of Head; empty where it is not known, and then nothing is held against it.
	// Downgrade is true if the caller asks for an older version than that.
	HeadVersion string
	Downgrade   bool
	// Comparison is that with Head, if a requirement needs it.
	Comparison *Comparison
	// Replay is true where the release is the head already, and the question is whether it would
	// be promoted again. Then nothing is replaced.
	Replay bool
	// Resource is the URI of the model's repository in that environment, and Now the time of the
	// promotion. Approvals count for this resource only. Without a resource none counts, and without a
	// time none that expires.
	Resource string
	Now      time.Time
	// Publishers are the callers who published the release. Who is among them cannot approve it as a
	// person. Issuer, subject and token are empty where the history does not have them.
	Publishers []evidence.Person
	// BreakGlass is true if unmet requirements are to be skipped where approvers agreed to that.
	// HeadMoved is the number of the newest event that moved the head; 0 if there is none. What
	// approvers agreed to before counts for nothing.
	BreakGlass bool
	HeadMoved  int64
	// Left is the number of the newest rollback that took the environment from this release to another; 0 if there is none. What
	// was approved before counts no more: somebody found a reason to leave it.
	Left int64
	// Newest is the time of the newest event in the history; zero if there is none. A clock that is
	// behind it was turned back.
	Newest time.Time
	// Restrictions are those in force in that environment. A Policy from [Environment.Policy] allows
	// nothing while they are unknown.
	Restrictions restriction.Restrictions
	// NodeTypes are those that are registered. A policy that [Policy.NeedsNodeTypes] allows nothing
	// while they are unknown.
	NodeTypes KnownNodeTypes
}
