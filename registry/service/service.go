// Package service implements the operations of a registry. Each package below it carries out some of them: it reads content
// and evidence, checks the policy, and orders the steps so that a crash at any point leaves the old head or the new one.
package service

import (
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/service/lookup"
)

// Service implements api.Interface with its ports. It is safe for concurrent use.
type Service struct{ backend *backend.Backend }

var _ api.Interface = (*Service)(nil)

// New checks the configuration. It requires every part that a check depends on. Errors:
// CodeInvalid.
func New(c backend.Backend) (*Service, error) {
	if c.Catalog == nil || c.Records == nil || c.Listing == nil || c.Intents == nil || c.Content == nil ||
		c.Verify == nil ||
		c.Sign == nil {
		return nil, registry.Errorf(registry.CodeInvalid,
			"service: catalog, records, listing, intents, content, verify and sign are all required")
	}
	if err := c.Environments.Validate(); err != nil {
		return nil, err
	}
	if c.Mirror == nil && slices.ContainsFunc(c.Environments.List, policy.Environment.External) {
		return nil, registry.Errorf(registry.CodeInvalid,
			"service: a mirror is required where an environment has a registry of its own")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Content = lookup.WithKept(c.Content, c.Catalog)
	return &Service{backend: &c}, nil
}
