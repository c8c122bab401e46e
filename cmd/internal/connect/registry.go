// Package connect opens the registry of a service, with the credentials, the CA and the trust of this machine.
package connect

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/oci/remote"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
)

// Registry is the registry that verbs work with: that of a service, or one that its caller opened in a data
// directory.
type Registry struct {
	api.Interface
	Envs    policy.Environments
	Store   *oci.Store
	Content *remote.Repositories // what Store opens repositories with
	Verify  storage.VerifyEvidence
	// VerifyNote verifies signed notes, such as checkpoints, by the same trust.
	VerifyNote trust.VerifyNote
	// RoleKeys lists the keys that have a role for a resource, by the same trust.
	RoleKeys func(ctx context.Context, resource string, role evidence.Role) ([]signer.RoleKey, error)
	// KeyIDs are the identifiers of the keys of that trust, by the names of their entries.
	KeyIDs func(ctx context.Context) (map[string]string, error)
	Host   string // of a service; empty for a data directory
	Name   string // what messages call a registry without a host
	// Nodes has what nodes reported.
	Nodes storage.NodeReporter
	// NodeTypes are the nodes that have a name.
	NodeTypes storage.NodeTypes
}

// HostOf is the registry that has the content of an environment, or "" for the data
// directory.
func (r *Registry) HostOf(environment string) string {
	if e, err := r.Envs.Find(environment); err == nil && e.External() {
		return e.Registry
	}
	return r.Host
}

// Reference puts the registry's host in front of a ref that has none.
func (r *Registry) Reference(ref string) string {
	if parsed, err := registry.ParseRef(ref); err != nil || parsed.Host != "" || r.Host == "" {
		return ref
	}
	return r.Host + "/" + ref
}

// WithoutHost takes the host from a ref, which must be that of the registry, or of the environment.
// Errors: CodeInvalid.
func (r *Registry) WithoutHost(ref registry.Ref) (registry.Ref, error) {
	name := r.Host
	if name == "" {
		name = r.Name
	}
	switch host := r.HostOf(ref.Environment); {
	case ref.Host == "" || ref.Host == host:
		ref.Host = ""
		return ref, nil
	case host != r.Host:
		return registry.Ref{}, registry.Errorf(registry.CodeInvalid, "ref %s is on %s, and environment %s is on %s", ref, ref.Host, ref.Environment, host)
	default:
		return registry.Ref{}, registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "ref %s is on %s, and this is %s", ref, ref.Host, name),
			"--registry http://%s", ref.Host)
	}
}
