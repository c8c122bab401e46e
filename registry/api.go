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
	// digest of the bundle's manifest.
	Attach(ctx context.Context, a Attachment) (Digest, error)
	// Promote moves the head of a protected environment. Errors: CodePolicy, with the
	// Decision in the Promotion, when a requirement is unmet; CodeConflict when somebody
	// else moved the head; CodeDigest or CodeTrust when content is not what it was.
	Promote(ctx context.Context, r PromoteRequest) (Promotion, error)
}

// Operator puts an environment back.
type Operator interface {
	// Rollback moves the head to an earlier head of the same environment and holds it
	// there. It is judged by the VSA that the release had then.
	Rollback(ctx context.Context, r RollbackRequest) (Promotion, error)
	// ReleaseHold lets promotions move a held head again. Errors: CodeNotFound, CodeInvalid
	// when there is no hold.
	ReleaseHold(ctx context.Context, environment, model, reason string) error
}

// Inspector reads one release.
type Inspector interface {
	// Release reads a release of an environment by tag or digest; an empty one means the head.
	Release(ctx context.Context, environment, model, tagOrDigest string) (Release, error)
	// Claims lists the evidence for a release and its engines, in claims that verify for
	// some trusted role in the environment and in what is ignored.
	Claims(ctx context.Context, environment string, r Release) (claims []Claim, ignored []Ignored, err error)
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
}
