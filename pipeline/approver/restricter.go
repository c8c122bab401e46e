package approver

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Restricter signs restriction lists and puts them in force. All fields but Nodes are required.
type Restricter struct {
	Registry interface {
		Registry
		Restrictions(ctx context.Context, environment string) (restriction.SignedRestrictions, error)
		Restrict(ctx context.Context, environment string, bundle []byte) (restriction.SignedRestrictions, error)
	}
	Environments policy.Environments
	NodeTypes    storage.NodeTypes    // those that may lose their engine
	Sign         storage.SignEvidence // asked for the approver's role
	Nodes        storage.NodeReporter // nodes that may have what is restricted; nil: none report
	Key          func(ctx context.Context) (id string, err error)
	Now          storage.Clock
}

// Restricted is what is in force in an environment, and what it concerns there.
type Restricted struct {
	Environment string                 `json:"environment"`
	Counter     int64                  `json:"counter"`        // of the list; 0 without one
	List        registry.Digest        `json:"list,omitempty"` // digest of its bundle
	Signer      string                 `json:"signer,omitempty"`
	InForce     []evidence.Restriction `json:"inForce"`
	Heads       []RestrictedHead       `json:"heads"`
	// Nodes report that they have an engine that is restricted, of a head or of another release.
	Nodes []storage.NodeReport `json:"nodes,omitempty"`
	// Unread lists the releases at a head or on a node that cannot be read. The registry gives them to no node. Do not use them.
	Unread []Unread `json:"unread,omitempty"`
}

// RestrictedHead is the head of a model with engines that restrictions concern.
type RestrictedHead struct {
	Model     string             `json:"model"`
	Version   string             `json:"version"` // tag of the release
	Release   registry.Digest    `json:"release"`
	Engines   []RestrictedEngine `json:"engines"`
	NodeTypes []AffectedNodeType `json:"nodeTypes,omitempty"`
}

// RestrictedEngine is an engine that is no longer given to nodes.
type RestrictedEngine struct {
	Engine  registry.Digest `json:"engine"`
	Label   string          `json:"label"`
	Reasons []string        `json:"reasons"`
}

// AffectedNodeType is a node type whose best engine is restricted.
type AffectedNodeType struct {
	Name   string `json:"name"`
	Engine string `json:"engine"` // label of the engine that it had
	// Instead is the label of the best of the other engines; empty: the node type has none left.
	Instead string `json:"instead,omitempty"`
}

// unread notes a release that could not be read, once.
func (r *Restricted) unread(model string, release registry.Digest, err error) {
	for _, u := range r.Unread {
		if u.Model == model && u.Release == release {
			return
		}
	}
	r.Unread = append(r.Unread, Unread{r.Environment, model, release, err.Error()})
}
