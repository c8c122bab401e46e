package rest

import (
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
)

// Paging is the end of the form of a list. Cursor is where the page begins: the Next of the page before. For a registry it is a
// name; over HTTP it is opaque.
type Paging struct {
	Limit  int    `query:"limit"`
	Cursor string `query:"cursor"`
}

// EnvironmentQuery names an environment.
type EnvironmentQuery struct {
	Environment string `query:"environment,required"`
}

// HeadsQuery selects heads; empty names mean all. The limit of a page counts models.
type HeadsQuery struct {
	Environment string `query:"environment"`
	Model       string `query:"model"`
	Paging
}

// ModelsQuery selects models that have a head; an empty environment means all.
type ModelsQuery struct {
	Environment string `query:"environment"`
	Paging
}

// ReleasesQuery selects the releases of a model in an environment.
type ReleasesQuery struct {
	Environment string `query:"environment,required"`
	Model       string `path:"model"`
	Paging
}

// ReleaseQuery names a release by tag or digest; an empty Ref means the head.
type ReleaseQuery struct {
	Environment string `query:"environment,required"`
	Model       string `path:"model"`
	Ref         string `query:"ref"`
}

// DigestQuery names an engine, or a piece of evidence.
type DigestQuery struct {
	Environment string          `query:"environment,required"`
	Model       string          `path:"model"`
	Digest      registry.Digest `query:"digest,required"`
}

// ClaimsQuery asks for the evidence about a release that was read.
type ClaimsQuery struct {
	Environment string
	Release     artifact.Release
}

// ComparisonQuery names two releases of a model.
type ComparisonQuery struct {
	Model string          `path:"model"`
	From  registry.Digest `query:"from,required"`
	To    registry.Digest `query:"to,required"`
}

// HistoryForm is a [history.HistoryQuery] over HTTP.
type HistoryForm struct {
	Environment string            `query:"environment"`
	Model       string            `query:"model"`
	Kind        history.EventKind `query:"kind"`
	Subject     registry.Digest   `query:"subject"`
	Signer      string            `query:"signer"`
	Principal   string            `query:"principal"`
	After       int64             `query:"after"`
	Before      int64             `query:"before"`
	Order       string            `query:"order"` // asc or desc
	Paging
}

// EventsQuery selects the events of a stream.
type EventsQuery struct {
	Environment string            `query:"environment"`
	Model       string            `query:"model"`
	Kind        history.EventKind `query:"kind"`
	After       int64             `query:"after"`
}

// EventQuery names an event by its number.
type EventQuery struct {
	Seq int64 `path:"seq"`
}

// PromotionsQuery selects the promotions of a model.
type PromotionsQuery struct {
	Model       string `path:"model"`
	Environment string `query:"environment"`
	Paging
}

// AfterQuery selects a page of items after a name or number.
type AfterQuery struct {
	After string `query:"after"`
	Paging
}

// NameQuery names a document.
type NameQuery struct {
	Name string `path:"name"`
}

// IDQuery names a webhook or token.
type IDQuery struct {
	ID string `path:"id"`
}

// ResolveRequest is the body of POST resolve: a node, a node type, or the labels of a
// Kubernetes node.
type ResolveRequest struct {
	Model       string            `json:"-" path:"model"`
	Environment string            `json:"environment"`
	Version     string            `json:"version,omitempty"`
	Variant     string            `json:"variant,omitempty"`
	As          string            `json:"as,omitempty"` // engine or image: the form that ref of the answer names; absent: engine
	NodeType    string            `json:"nodeType,omitempty"`
	Node        *artifact.Node    `json:"node,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Runtime     *artifact.Runtime `json:"runtime,omitempty"`     // absent: the runtimes of the node
	RuntimeName string            `json:"runtimeName,omitempty"` // name of a runtime that the service knows
}

// FactsQuery describes a node in a query. Accelerator facts apply to all GPUCount devices.
type FactsQuery struct {
	Environment  string   `query:"environment,required"`
	Version      string   `query:"version"`
	Variant      string   `query:"variant"`
	As           string   `query:"as"`
	Runtime      []string `query:"runtime"`
	NodeType     string   `query:"nodeType"`
	OS           string   `query:"os"`
	Arch         string   `query:"arch"`
	Level        string   `query:"level"`
	Features     []string `query:"features"`
	MemoryMiB    int64    `query:"memoryMiB"`
	GPUVendor    string   `query:"gpuVendor"`
	GPUProduct   string   `query:"gpuProduct"`
	GPUArch      string   `query:"gpuArch"`
	GPUMemoryMiB int64    `query:"gpuMemoryMiB"`
	GPUMig       string   `query:"gpuMig"`
	GPUDriver    string   `query:"gpuDriver"`
	GPUCount     int64    `query:"gpuCount"`
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

// Attached is the answer to POST evidence.
type Attached struct {
	Bundle registry.Digest `json:"bundle"` // of its manifest
}

// Hold stops promotions from moving a head.
type Hold struct {
	Environment string `json:"environment"`
	Model       string `json:"-" path:"model"`
	Reason      string `json:"reason"`
}

// HistoryAcceptance accepts what the history does not explain.
type HistoryAcceptance struct {
	Environment string `json:"environment"`
	Model       string `json:"-" path:"model"`
	Reason      string `json:"reason"`
}

// Adoption is the body of POST configuration.
type Adoption struct {
	Adopt history.Configuration `json:"adopt"` // the expected configuration in the files of the replica
}

// Verification is the answer to GET history/verification.
type Verification struct {
	Intact bool            `json:"intact"`          // neither Fault nor Faults
	Events int64           `json:"events"`          // number of events with a correct chain
	Last   registry.Digest `json:"last,omitempty"`  // hash of the last of them
	Fault  string          `json:"fault,omitempty"` // of the chain
	// Faults are heads and summaries that the history does not explain. It is set only if the
	// chain is correct.
	Faults []history.HistoryFault `json:"faults,omitempty"`
}

// TargetUse is a target with the engines at heads that were built for it.
type TargetUse struct {
	Target  artifact.Target `json:"target"`
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

// Quarantine is an item of the answer to GET quarantines. Lifted quarantines are not listed.
type Quarantine struct {
	Bundle     registry.Digest `json:"bundle"` // the digest that a lift must name
	Subject    registry.Digest `json:"subject"`
	Label      string          `json:"label"` // of the subject: "release", or the label of an engine
	Reason     string          `json:"reason,omitempty"`
	IssuedOn   time.Time       `json:"issuedOn,omitzero"`
	Signer     string          `json:"signer"`
	RecordedAt time.Time       `json:"recordedAt,omitzero"`
}

// Claims is the answer to GET evidence.
type Claims struct {
	Claims       []evidence.Claim   `json:"claims"`
	Ignored      []evidence.Ignored `json:"ignored"`      // the first evidence.MaxIgnored
	IgnoredCount int                `json:"ignoredCount"` // number of all ignored pieces
}

// NodeReportsQuery selects reports of nodes.
type NodeReportsQuery struct {
	Environment string `query:"environment,required"`
	Model       string `query:"model"`
	Silent      bool   `query:"silent"` // those that have expired
	Paging
}

// NodeReport is the body of a report of a node. The registry sets the other fields of a [storage.NodeReport].
type NodeReport struct {
	Node        string          `json:"node"`
	NodeType    string          `json:"nodeType,omitempty"`
	Environment string          `json:"environment"`
	Model       string          `json:"model"`
	Release     registry.Digest `json:"release"`
	Engine      registry.Digest `json:"engine"`
	Machine     string          `json:"machine,omitempty"` // what only that machine has
}
