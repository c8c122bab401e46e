package run

import (
	"context"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Attach signs a statement in a role and hands it to the registry.
func (env *Env) Attach(ctx context.Context, role evidence.Role, statement []byte, to api.Attachment) error {
	bundle, err := env.Sign(ctx, role, statement)
	if err != nil {
		return err
	}
	to.Bundle = bundle
	_, err = env.Registry.Attach(ctx, to)
	return err
}

// Resource is an in-toto ResourceDescriptor.
type Resource struct {
	Name        string             `json:"name"`
	URI         string             `json:"uri,omitempty"`
	Digest      evidence.DigestSet `json:"digest,omitempty"`
	Annotations map[string]any     `json:"annotations,omitempty"`
}
