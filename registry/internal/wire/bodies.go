package wire

import "mlpromote.dev/mlpromote/registry"

// ResolveRequest is the body of POST resolve.
type ResolveRequest struct {
	Environment string            `json:"environment"`
	Version     string            `json:"version,omitempty"`
	Variant     string            `json:"variant,omitempty"`
	NodeType    string            `json:"nodeType,omitempty"` // in place of node
	Node        *registry.Node    `json:"node,omitempty"`
	Runtime     *registry.Runtime `json:"runtime,omitempty"` // absent: the runtimes of the node
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
}

// Attached is the answer to POST evidence.
type Attached struct {
	Bundle registry.Digest `json:"bundle"` // of its manifest
}

// PromoteRequest is the body of POST promotions.
type PromoteRequest struct {
	Reference string `json:"reference,omitempty"` // tag or digest; empty means the head
	From      string `json:"from,omitempty"`
	To        string `json:"to,omitempty"`
	DryRun    bool   `json:"dryRun,omitempty"`
}

// RollbackRequest is the body of POST rollbacks.
type RollbackRequest struct {
	Environment string `json:"environment"`
	Version     string `json:"version,omitempty"`
	Reason      string `json:"reason"`
}

// HoldRelease is the body of POST hold-releases.
type HoldRelease struct {
	Environment string `json:"environment"`
	Reason      string `json:"reason"`
}

// Claims is the answer to GET claims.
type Claims struct {
	Claims  []Claim            `json:"claims"`
	Ignored []registry.Ignored `json:"ignored"`
}

// Claim is a registry.Claim.
type Claim struct {
	Bundle    registry.Digest    `json:"bundle"`
	Subject   registry.Digest    `json:"subject"`
	Statement registry.Statement `json:"statement"`
	Signer    string             `json:"signer"`
	Roles     []registry.Role    `json:"roles"`
}
