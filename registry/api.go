package registry

import "context"

// Reader answers questions about environments.
type Reader interface {
	// Environments gives the chain of environments with their policies and trust.
	Environments(ctx context.Context) (Environments, error)
	// Heads lists heads by environment and model. Empty arguments mean all.
	Heads(ctx context.Context, environment, model string) ([]Head, error)
	// Resolve gives the engine for a node, and why every other candidate lost. Errors:
	// CodeNotFound without such a release; CodePolicy where a protected environment has
	// no proof for it; CodeNoEngine, with the Resolution, when no candidate is left.
	Resolve(ctx context.Context, q ResolveQuery) (Resolution, error)
	// History lists events that the caller may see: q.Limit of them, where there are as many.
	History(ctx context.Context, q HistoryQuery) ([]Event, error)
}

// Writer changes environments.
type Writer interface {
	// Publish moves the first environment's head to a release that was built there.
	Publish(ctx context.Context, p Publication) (Head, error)
	// Attach adds evidence to a release or an engine, in any environment. It must be
	// signed by a key that is trusted there for the role that its predicate type asks
	// for. Errors: CodeTrust otherwise; CodeNotFound without the subject. It gives the
	// digest of the bundle's manifest. What [Spreads] is attached in every other environment
	// too that has the subject and trusts the key; an error after that began comes with the
	// digest, and attaching again does the rest. Attaching again what is there is no event.
	Attach(ctx context.Context, a Attachment) (Digest, error)
	// Promote moves the head of a protected environment. A head that is there already is
	// judged too. Errors: CodePolicy, with the Decision in the Promotion, when a requirement
	// is unmet; CodeConflict when its ground moved again and again before it was
	// done; CodeDigest or CodeTrust when content was changed.
	Promote(ctx context.Context, r PromoteRequest) (Promotion, error)
}

// Operator puts an environment back.
type Operator interface {
	// Rollback moves the head to an earlier head of the same environment and holds it
	// there. It is judged by the VSA that the release had then. Errors: CodeConflict when no
	// version is named and another request moved the head meanwhile.
	Rollback(ctx context.Context, r RollbackRequest) (Promotion, error)
	// SetHold keeps promotions from moving a head until ReleaseHold. Refused promotions
	// show the reason. Errors: CodeNotFound without a head; CodeInvalid for an environment
	// that is not protected, or without a reason.
	SetHold(ctx context.Context, environment, model, reason string) error
	// ReleaseHold lets promotions move a held head again. Errors: CodeNotFound, CodeInvalid
	// when there is no hold.
	ReleaseHold(ctx context.Context, environment, model, reason string) error
}

// Auditor compares the catalog with its history.
type Auditor interface {
	// HistoryFaults lists what the history does not explain about models that the caller may
	// see: heads that are not where it put them, tags and evidence that no event names,
	// summaries that name missing events, and evidence that the catalog lists in another order.
	// It leaves out accepted faults, and does not check the history's own chain.
	HistoryFaults(ctx context.Context) ([]HistoryFault, error)
	// AcceptHistory accepts the faults of a model in an environment, so that they no longer
	// block promotions. Errors: CodeInvalid if there is no fault, or without a reason.
	AcceptHistory(ctx context.Context, environment, model, reason string) error
}

// Inspector reads one release.
type Inspector interface {
	// Release reads a release of an environment by tag or digest; an empty one means the head.
	Release(ctx context.Context, environment, model, tagOrDigest string) (Release, error)
	// Claims lists the evidence for a release and its engines, in claims that verify for
	// some trusted role in the environment, by bundle, and in what is ignored.
	Claims(ctx context.Context, environment string, r Release) ([]Claim, IgnoredEvidence, error)
	// Engine reads one engine by digest, whatever release it is of. Errors: CodeNotFound.
	Engine(ctx context.Context, environment, model string, d Digest) (Engine, error)
	// Bundle reads one piece of evidence by the digest of its manifest, whether it counts
	// or not. Errors: CodeNotFound.
	Bundle(ctx context.Context, environment, model string, d Digest) (Bundle, error)
}

// Lister pages through names, in byte order. A page holds up to limit things, a hundred
// where limit is 0, and a thousand at most, and begins behind a name that an earlier
// page gave as Next. It may be short, even empty, with more behind it.
type Lister interface {
	// Models lists the models that have a head in an environment, in any if it is empty,
	// with those heads. Errors: CodeNotFound without such an environment.
	Models(ctx context.Context, environment, after string, limit int) (Page[ModelHeads], error)
	// Releases lists the releases of a model in an environment by tag. The tag that
	// mirrors the head is left out. Errors: CodeNotFound without such an environment.
	Releases(ctx context.Context, environment, model, after string, limit int) (Page[TaggedRelease], error)
}

// Interface is all that the verbs need of a registry, near or far.
type Interface interface {
	Reader
	Writer
	Operator
	Auditor
	Inspector
	Lister
}

// ResolveQuery asks for the right engine.
type ResolveQuery struct {
	Environment string
	Model       string
	Version     string   // tag; empty means the head
	Node        Node     // of the machine that will load the engine
	Runtime     *Runtime // nil: the runtimes of the node
	Variant     string   // empty: any; the lowest precision of the closest target wins
}

// Resolution is the answer: an engine, or why there is none.
type Resolution struct {
	Release    Digest      `json:"release"`
	Version    string      `json:"version"`
	Engine     *Engine     `json:"engine,omitempty"` // nil: no candidate is left
	Reference  string      `json:"reference,omitempty"`
	Candidates []Candidate `json:"candidates"` // every engine of the release, the winner first
}

// Candidate is an engine that was considered.
type Candidate struct {
	Engine Digest   `json:"engine"`
	Label  string   `json:"label"`
	Chosen bool     `json:"chosen"`
	Lost   []string `json:"lost,omitempty"` // why it is not the answer
}

// Publication names a release that was built in the first environment.
type Publication struct {
	Model   string
	Release Digest
}

// Attachment is evidence to add.
type Attachment struct {
	Environment string
	Model       string
	Release     Digest
	Subject     Digest // the release, or an engine of it
	Bundle      []byte
}

// PromoteRequest asks for a promotion.
type PromoteRequest struct {
	Model     string
	Reference string // tag or digest in the source; empty means its head
	From, To  string // empty means the only edge there is
	DryRun    bool   // decide and change nothing
}

// RollbackRequest asks for an earlier head.
type RollbackRequest struct {
	Environment string
	Model       string
	Version     string // tag; empty means the head before the present one
	Reason      string
	Node        *Node // the Promotion warns if this node is left without an engine; nil: no node
	DryRun      bool  // decide and change nothing
}

// Promotion is a head that moved, or why it did not.
type Promotion struct {
	Environment string   `json:"environment"`
	From        string   `json:"from,omitempty"`
	Model       string   `json:"model"`
	Version     string   `json:"version"`
	Release     Digest   `json:"release"`
	Previous    Digest   `json:"previous,omitempty"`
	Already     bool     `json:"already,omitempty"` // the head was there; nothing was done
	Decision    Decision `json:"decision"`
	VSA         []Digest `json:"vsa,omitempty"` // bundle manifests, release first
	// Warnings of a rollback name engines that resolve refuses, and node types that are left
	// without an engine.
	Warnings []string `json:"warnings,omitempty"`
}
