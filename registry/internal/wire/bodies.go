package wire

import (
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// ResolveRequest is the body of POST resolve: a node, a node type, or the labels of a
// Kubernetes node.
type ResolveRequest struct {
	Environment string            `json:"environment"`
	Version     string            `json:"version,omitempty"`
	Variant     string            `json:"variant,omitempty"`
	NodeType    string            `json:"nodeType,omitempty"`
	Node        *registry.Node    `json:"node,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Runtime     *registry.Runtime `json:"runtime,omitempty"`     // absent: the runtimes of the node
	RuntimeName string            `json:"runtimeName,omitempty"` // name of a runtime that the service knows
}

// Publication is the body of POST publications.
type Publication struct {
	Release registry.Digest `json:"release"`
}

// Attachment is the body of POST evidence.
type Attachment struct {
	Environment string          `json:"environment"`
	Release     registry.Digest `json:"release"`
	Subject     registry.Digest `json:"subject"`
	Bundle      []byte          `json:"bundle"` // base64
	// Figures are the per-case figures that the report in the bundle names, in base64.
	Figures []byte `json:"figures,omitempty"`
}

// Attestation is the body of POST attestations: what the caller says about a release.
type Attestation struct {
	Kind        registry.AttestKind `json:"kind"`
	Environment string              `json:"environment"`
	Release     registry.Digest     `json:"release"`
	Subject     registry.Digest     `json:"subject,omitempty"`
	Comment     string              `json:"comment"`
	ExpiresOn   time.Time           `json:"expiresOn,omitzero"`
	Accepts     []string            `json:"accepts,omitempty"`
}

// Restriction is the body of POST restrictions: the next restriction list of an environment.
type Restriction struct {
	Environment string `json:"environment"`
	Bundle      []byte `json:"bundle"` // base64
}

// TrustBundle is the body of POST trust-bundle: the next trust bundle.
type TrustBundle struct {
	Bundle []byte `json:"bundle"` // base64
}

// Attached is the response to POST evidence.
type Attached struct {
	Bundle registry.Digest `json:"bundle"` // of its manifest
}

// PromoteRequest is the body of POST promotions.
type PromoteRequest struct {
	Ref    string `json:"ref,omitempty"` // tag or digest; empty means the head
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	DryRun bool   `json:"dryRun,omitempty"`
	// BreakGlass skips unmet requirements where two approvers agreed to that.
	BreakGlass bool `json:"breakGlass,omitempty"`
	// Downgrade replaces a newer version, which is refused without it. Older services refuse a body that has it.
	Downgrade bool `json:"downgrade,omitempty"`
	// Reason stays in the history. Older services refuse a body that has it.
	Reason string `json:"reason,omitempty"`
	// Replaces is the head of the destination when the caller decided, empty if there was none. Another one is refused.
	Replaces *registry.Digest `json:"replaces,omitempty"`
}

// RollbackRequest is the body of POST rollbacks.
type RollbackRequest struct {
	Environment string         `json:"environment"`
	Version     string         `json:"version,omitempty"`
	Reason      string         `json:"reason"`
	Node        *registry.Node `json:"node,omitempty"` // the response warns if it loses its engine
	DryRun      bool           `json:"dryRun,omitempty"`
	// Replaces is the head when the caller decided. Another one is refused.
	Replaces *registry.Digest `json:"replaces,omitempty"`
}

// Hold is the body of POST holds.
type Hold struct {
	Environment string `json:"environment"`
	Reason      string `json:"reason"`
}

// HoldRelease is the body of POST hold-releases.
type HoldRelease struct {
	Environment string `json:"environment"`
	Reason      string `json:"reason"`
	// Seen is the reason of the hold when the caller decided. A hold with another one is not released.
	Seen *string `json:"seen,omitempty"`
}

// HistoryAcceptance is the body of POST history-acceptances.
type HistoryAcceptance struct {
	Environment string `json:"environment"`
	Reason      string `json:"reason"`
}

// Adoption is the body of POST configuration.
type Adoption struct {
	Adopt registry.Configuration `json:"adopt"` // the expected configuration in the files of the replica
}

// NoteType is the media type of a signed checkpoint and of a proof, which are text.
const NoteType = "text/plain; charset=utf-8"

// BundleType is the media type of a bundle's bytes.
const BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// Verification is the response to GET history/verification.
type Verification struct {
	Intact bool            `json:"intact"`          // neither Fault nor Faults
	Events int64           `json:"events"`          // number of events with a correct chain
	Last   registry.Digest `json:"last,omitempty"`  // hash of the last of them
	Fault  string          `json:"fault,omitempty"` // of the chain
	// Faults are heads and summaries that the history does not explain. It is set only if the
	// chain is correct.
	Faults []registry.HistoryFault `json:"faults,omitempty"`
}

// TargetUse is a target with the engines at heads that were built for it.
type TargetUse struct {
	Target  registry.Target `json:"target"`
	Engines []TargetEngine  `json:"engines"`
}

// TargetEngine is an engine at a head.
type TargetEngine struct {
	Environment string          `json:"environment"`
	Model       string          `json:"model"`
	Version     string          `json:"version"` // tag of the release
	Engine      registry.Digest `json:"engine"`
	Variant     string          `json:"variant"`
}

// Quarantine is an item of the response to GET quarantines. Lifted quarantines are not listed.
type Quarantine struct {
	Bundle     registry.Digest `json:"bundle"` // the digest that a lift must name
	Subject    registry.Digest `json:"subject"`
	Label      string          `json:"label"` // of the subject: "release", or the label of an engine
	Reason     string          `json:"reason,omitempty"`
	IssuedOn   time.Time       `json:"issuedOn,omitzero"`
	Signer     string          `json:"signer"`
	RecordedAt time.Time       `json:"recordedAt,omitzero"`
}

// Claims is the response to GET evidence.
type Claims struct {
	Claims       []Claim            `json:"claims"`
	Ignored      []registry.Ignored `json:"ignored"`      // the first registry.MaxIgnored
	IgnoredCount int                `json:"ignoredCount"` // number of all ignored pieces
}

// Claim is a registry.Claim.
type Claim struct {
	Bundle    registry.Digest    `json:"bundle"`
	Subject   registry.Digest    `json:"subject"`
	Statement registry.Statement `json:"statement"`
	Signer    string             `json:"signer"`
	// Keys is absent in responses of older services.
	Keys  []string        `json:"keys,omitempty"`
	Roles []registry.Role `json:"roles"`
	// Key is absent in responses of older services, which list only trusted keys.
	Key       registry.KeyState `json:"key,omitempty"`
	RetiredAt time.Time         `json:"retiredAt,omitzero"`
	// Window and Stamped are absent in responses of older services.
	Window   registry.Window `json:"window,omitzero"`
	Stamped  time.Time       `json:"stamped,omitzero"`
	Recorded int64           `json:"recorded,omitempty"`
	// WithoutHistory is false in responses of services, which have a history.
	WithoutHistory bool      `json:"withoutHistory,omitempty"`
	RecordedAt     time.Time `json:"recordedAt,omitzero"`
	Observed       int64     `json:"observed,omitempty"`
}

// NodeReport is the body of a report of a node. What the service sets is in [registry.NodeReport].
type NodeReport struct {
	Node        string          `json:"node"`
	NodeType    string          `json:"nodeType,omitempty"`
	Environment string          `json:"environment"`
	Model       string          `json:"model"`
	Release     registry.Digest `json:"release"`
	Engine      registry.Digest `json:"engine"`
	Machine     string          `json:"machine,omitempty"` // what only that machine has
}
