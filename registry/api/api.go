// Package api has the interface of a registry: questions and changes, with the types of requests and answers.
package api

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Reader answers questions about environments.
type Reader interface {
	// Environments returns the chain of environments with their policies and trust.
	Environments(ctx context.Context) (policy.Environments, error)
	// Heads lists heads by environment and model. Empty arguments mean all.
	Heads(ctx context.Context, environment, model string) ([]history.Head, error)
	// Resolve returns the engine for a node, and the reasons why each other candidate was rejected. Errors:
	// CodeNotFound if the release does not exist; CodePolicy if a protected environment has no
	// proof for it; CodeNoEngine, with the Resolution, if no candidate is left; CodeNotFound if the query asks for an
	// image form, and the release has none.
	Resolve(ctx context.Context, q ResolveQuery) (Resolution, error)
	// Restrictions returns the restriction list in force in an environment. Without a list only
	// Environment is set. Errors: CodeNotFound for an unknown environment; CodeTrust and CodeDigest
	// if the list is missing, was changed or does not count.
	Restrictions(ctx context.Context, environment string) (restriction.SignedRestrictions, error)
	// History lists up to q.Limit events that the caller may see.
	History(ctx context.Context, q history.HistoryQuery) ([]history.Event, error)
}

// Writer changes environments.
type Writer interface {
	// Publish moves the first environment's head to a release that was built there.
	Publish(ctx context.Context, p Publication) (history.Head, error)
	// Attach adds evidence to a release or an engine, in any environment, and returns the digest
	// of the bundle's manifest. A key that is trusted there for the role of the predicate type
	// must have signed it. Attaching a bundle again records no event.
	//
	// If the predicate type [evidence.Spreads], Attach also attaches the bundle in every other environment
	// that has the subject and trusts the key. If that fails midway, Attach returns the digest
	// with the error; attaching again does the rest.
	//
	// Errors: CodeTrust if the signature does not count; CodeNotFound if the subject does not
	// exist.
	Attach(ctx context.Context, a Attachment) (registry.Digest, error)
	// Promote moves the head of a protected environment. It checks the policy even if the head is
	// already at the release. Errors: CodePolicy, with the Decision in the Promotion, if a
	// requirement is unmet; CodeConflict if the state that it rests on changed during every
	// attempt; CodeDigest or CodeTrust if content was changed.
	Promote(ctx context.Context, r PromoteRequest) (Promotion, error)
}

// Previewer says what promotions would be decided, for pages and lists that show many of them.
type Previewer interface {
	// Preview decides about a promotion as a dry run of [Writer.Promote] does, but does not read the
	// bytes of the release again, and may return an answer that was given before, while no event of the
	// model or its environments came since and for a minute at most. It never allows anything: Promote decides anew.
	// Only model, ref and environments of the request are regarded. Errors: as Promote.
	Preview(ctx context.Context, r PromoteRequest) (Promotion, error)
	// PreviewRollback decides about a rollback as a dry run of [Operator.Rollback] does, but reads no bytes of the release.
	// The reason and the head that the request replaces are not regarded. Errors: as Rollback.
	PreviewRollback(ctx context.Context, r RollbackRequest) (Promotion, error)
	// Standing lists the engines of a head. The reasons of an engine say why nodes are not given it any more, whatever
	// the node: it is in quarantine, or a key that vouched for it was revoked. No engine is chosen. Errors: as
	// [Reader.Resolve]; CodePolicy if the promotion of the head does not count any more, so that nodes are given no engine.
	Standing(ctx context.Context, environment, model string) ([]Candidate, error)
}

// Restricter changes the restrictions of an environment.
type Restricter interface {
	// Restrict puts a signed restriction list in force, and returns it. An approver of the whole
	// environment must have signed it, and it must follow the list in force
	// ([restriction.CheckNext]). The list that is in force is accepted again. Errors: CodeTrust
	// if the signature does not count, or the list is for another environment; CodeConflict if
	// another list is in force than the one that it follows.
	Restrict(ctx context.Context, environment string, bundle []byte) (restriction.SignedRestrictions, error)
}

// TrustPublisher has the trust bundles of a registry.
type TrustPublisher interface {
	// rest.TrustBundle returns the newest trust bundle. Whoever relies on it verifies its signature. Errors:
	// CodeNotFound if none was published; CodeTrust and CodeDigest if it is missing or was changed.
	TrustBundle(ctx context.Context) (trust.SignedTrust, error)
	// rest.PublishTrust makes a signed bundle the newest, and returns it. A publisher of the whole registry
	// must have signed it, it must follow the newest ([trust.AcceptedTrust.CheckNext]), and say what the
	// registry itself says. The newest is accepted again. Errors: CodeTrust if the signature does not
	// count or the bundle says something else; CodeConflict if another one is the newest.
	PublishTrust(ctx context.Context, bundle []byte) (trust.SignedTrust, error)
}

// Operator moves environments back to earlier releases and holds them there.
type Operator interface {
	// Rollback moves the head to an earlier head of the same environment and holds it there. It
	// requires the VSA that the release had then. Errors: CodeConflict if no version is named and
	// another request moved the head meanwhile.
	Rollback(ctx context.Context, r RollbackRequest) (Promotion, error)
	// rest.SetHold stops promotions from moving a head until rest.ReleaseHold. Refused promotions show the
	// reason. Errors: CodeNotFound if there is no head; CodeInvalid if the environment is not
	// protected or the reason is empty.
	SetHold(ctx context.Context, environment, model, reason string) error
	// rest.ReleaseHold lets promotions move a held head again. Errors: CodeNotFound if there is no
	// head, or it has no hold; CodeInvalid if the reason is empty; CodeConflict if it is another
	// hold than the caller saw.
	ReleaseHold(ctx context.Context, r HoldRelease) error
}

// Auditor compares the catalog with its history.
type Auditor interface {
	// rest.HistoryFaults lists differences between the catalog and its history, for models that the
	// caller may see:
	//   - heads that are not where the history put them
	//   - tags and evidence that no event names
	//   - summaries that name missing events
	//   - evidence that the catalog lists in another order
	//   - adverse evidence that the catalog keeps and a repository does not list, or that is not kept
	//   - restriction lists and trust bundles that are missing, changed or older than events say
	//
	// It leaves out accepted faults and does not check the hash chain of the history.
	HistoryFaults(ctx context.Context) ([]history.HistoryFault, error)
	// rest.AcceptHistory accepts the faults of a model in an environment, so that they no longer block
	// promotions. Errors: CodeInvalid if there is no fault or the reason is empty.
	AcceptHistory(ctx context.Context, environment, model, reason string) error
}

// Inspector reads one release.
type Inspector interface {
	// Release reads a release of an environment by tag or digest. The empty string means the head.
	Release(ctx context.Context, environment, model, tagOrDigest string) (artifact.Release, error)
	// Claims lists the evidence for a release and its engines. The claims are bundles that verify
	// for some trusted role in the environment; the rest is ignored evidence.
	Claims(ctx context.Context, environment string, r artifact.Release) ([]evidence.Claim, evidence.IgnoredEvidence, error)
	// Engine reads one engine by digest, in any release. Errors: CodeNotFound.
	Engine(ctx context.Context, environment, model string, d registry.Digest) (artifact.Engine, error)
	// Bundle reads one piece of evidence by the digest of its manifest, whether it counts
	// or not. Errors: CodeNotFound.
	Bundle(ctx context.Context, environment, model string, d registry.Digest) (evidence.Bundle, error)
}

// Lister pages through names in byte order. A page holds up to limit items: 100 if limit is 0,
// and 1000 at most. It begins after the given name, which is the Next of an earlier page. A
// page can be short or empty although more items follow.
type Lister interface {
	// Models lists the models that have a head in an environment, with those heads. An empty
	// environment means all. Errors: CodeNotFound if the environment does not exist.
	Models(ctx context.Context, environment, after string, limit int) (storage.Page[history.ModelHeads], error)
	// Releases lists the releases of a model in an environment by tag, without the tag that
	// mirrors the head. Errors: CodeNotFound if the environment does not exist.
	Releases(ctx context.Context, environment, model, after string, limit int) (storage.Page[storage.TaggedRelease], error)
}

// Interface is everything that commands need of a registry, local or remote.
type Interface interface {
	Reader
	Writer
	evidence.Attester
	Restricter
	TrustPublisher
	Operator
	Auditor
	Inspector
	Lister
}

// ResolveQuery asks for the right engine.
type ResolveQuery struct {
	Environment string
	Model       string
	Version     string            // tag; empty means the head
	Node        artifact.Node     // the machine that will load the engine
	Runtime     *artifact.Runtime // nil: the runtimes of the node
	Variant     string            // empty means any
	As          Form              // the form of the engine that Ref of the answer names
	// Known is the answer that the same query had before, or nil. It is the answer again if the
	// registry knows that it is.
	Known *Resolution
}

// Form is a form of an engine that a node may load.
type Form string

// The forms of an engine. The zero Form is the engine itself, for mlpromote pull and oras pull.
const (
	AsEngine Form = ""
	AsImage  Form = "image" // its image form, for container runtimes
)

// ParseForm reads a form from a flag or a request; "engine" is the engine itself. Errors: CodeInvalid.
func ParseForm(text string) (Form, error) {
	switch text {
	case "", "engine":
		return AsEngine, nil
	case string(AsImage):
		return AsImage, nil
	}
	return AsEngine, registry.Errorf(registry.CodeInvalid, "form %q: want engine or image", text)
}

// Machine is the node of the query with the runtime that loads the engine there.
func (q ResolveQuery) Machine() artifact.Node {
	n := q.Node
	if q.Runtime != nil {
		n.Runtimes = q.Runtime.Runtimes
	}
	return n
}

// Resolution is the engine that was found, or the reasons why every candidate was rejected.
type Resolution struct {
	Release    registry.Digest  `json:"release"`
	Version    string           `json:"version"`
	Engine     *artifact.Engine `json:"engine,omitempty"` // nil if no candidate is left; others may have it too: do not change it
	Ref        string           `json:"ref,omitempty"`    // of the engine, or of its image form if the query asked for that
	Candidates []Candidate      `json:"candidates"`       // every engine of the release, the winner first
	// Unlisted is the evidence about the engine and its release that the catalog keeps, and their repository does not
	// list. A pull checks it and puts it beside what it finds there.
	Unlisted []evidence.AdverseEvidence `json:"unlisted,omitempty"`
	// Ground identifies what the engine was chosen from. The same query has the same answer while it
	// is equal. Nil: unknown.
	Ground any `json:"-"`
}

// Candidate is an engine that was considered.
type Candidate struct {
	Engine  registry.Digest `json:"engine"`
	Label   string          `json:"label"`
	Chosen  bool            `json:"chosen"`
	Reasons []string        `json:"reasons,omitempty"` // why it was not chosen
	// MissingRuntimes has, by name, what the engine needs of each runtime that the node does not have, if that is all that speaks against it.
	MissingRuntimes map[string]string `json:"missingRuntimes,omitempty"`
}

// Publication names a release that was built in the first environment.
type Publication struct {
	Model   string          `json:"-" path:"model"`
	Release registry.Digest `json:"release"`
}

// Attachment is evidence to add.
type Attachment struct {
	Environment string          `json:"environment"`
	Model       string          `json:"-" path:"model"`
	Release     registry.Digest `json:"release"`
	Subject     registry.Digest `json:"subject"` // the release or one of its engines
	Bundle      []byte          `json:"bundle"`
	// Figures are the per-case figures that the report in the bundle names ([evidence.CaseFigures]), to be
	// stored with it; nil for none.
	Figures []byte `json:"figures,omitempty"`
}

// PromoteRequest asks for a promotion.
type PromoteRequest struct {
	Model  string `json:"-" path:"model"`
	Ref    string `json:"ref,omitempty"`    // tag or digest in the source; empty means its head
	From   string `json:"from,omitempty"`   // empty means the only possible edge
	To     string `json:"to,omitempty"`     // likewise
	DryRun bool   `json:"dryRun,omitempty"` // decide, but change nothing
	// BreakGlass skips unmet requirements where approvers agreed to that.
	BreakGlass bool `json:"breakGlass,omitempty"`
	// Downgrade replaces a newer version. Without it that is refused: [Operator.Rollback] goes back.
	Downgrade bool `json:"downgrade,omitempty"`
	// Reason is why, in the words of the caller; it stays in the history. It may be empty.
	Reason string `json:"reason,omitempty"`
	// Replaces is the head of the destination as the caller saw it, empty if there was none. Nil: any. Another head gives
	// CodeConflict, unless it is the release already.
	Replaces *registry.Digest `json:"replaces,omitempty"`
}

// RollbackRequest asks for an earlier head.
type RollbackRequest struct {
	Environment string         `json:"environment"`
	Model       string         `json:"-" path:"model"`
	Version     string         `json:"version,omitempty"` // tag; empty means the head before the current one
	Reason      string         `json:"reason"`
	Node        *artifact.Node `json:"node,omitempty"`   // if set, the Promotion warns if no engine is left for this node
	DryRun      bool           `json:"dryRun,omitempty"` // decide, but change nothing
	// Replaces is the head as the caller saw it. Nil: any. Another head gives CodeConflict.
	Replaces *registry.Digest `json:"replaces,omitempty"`
}

// HoldRelease asks to let promotions move a held head again.
type HoldRelease struct {
	Environment string `json:"environment"`
	Model       string `json:"-" path:"model"`
	Reason      string `json:"reason"`
	// Seen is the reason of the hold as the caller saw it. Nil: any. Another one gives CodeConflict.
	Seen *string `json:"seen,omitempty"`
}

// Promotion describes a head that moved, or why it did not move.
type Promotion struct {
	Environment string            `json:"environment"`
	From        string            `json:"from,omitempty"`
	Model       string            `json:"model"`
	Version     string            `json:"version"`
	Release     registry.Digest   `json:"release"`
	Previous    registry.Digest   `json:"previous,omitempty"`
	Unchanged   bool              `json:"unchanged,omitempty"` // the head was already at the release
	Hold        string            `json:"hold,omitempty"`      // of a promotion: why the destination's head is held; empty if it is not
	Decision    policy.Decision   `json:"decision"`
	VSA         []registry.Digest `json:"vsa,omitempty"` // bundle manifests, release first
	// NodesGet lists, for a promotion, the engine that each registered node type would get of the release in the destination.
	NodesGet []artifact.NodeEngine `json:"nodesGet,omitempty"`
	// Warnings of a rollback name engines that resolve refuses, and node types that have no engine
	// left; those of a promotion say why NodesGet is missing.
	Warnings []string `json:"warnings,omitempty"`
	// Nodes lists the node types, and the caller's node, that get another engine by a rollback or
	// lose theirs.
	Nodes []NodeChange `json:"nodes,omitempty"`
}

// NodeChange says which engine a node gets now, and which it will get. Both are empty where there is
// none that may be used.
type NodeChange struct {
	Node       string          `json:"node"` // "node type NAME" or "this node"
	From       string          `json:"from,omitempty"`
	To         string          `json:"to,omitempty"`
	FromEngine registry.Digest `json:"fromEngine,omitempty"`
	ToEngine   registry.Digest `json:"toEngine,omitempty"`
}
