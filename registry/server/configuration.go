package server

import (
	"context"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// Configuration is what a service says about its configuration, and how a change of it
// becomes what all replicas agree on.
type Configuration interface {
	Status() registry.ConfigurationStatus
	// Adopt makes what the files of this service say the agreed configuration. want is what
	// they are expected to say. Errors: CodeConflict where they say something else.
	Adopt(ctx context.Context, want registry.Configuration) (registry.ConfigurationStatus, error)
}

// configurationRoutes are for administrators: the changes name keys, people and hosts.
func configurationRoutes() []route {
	const administer = registry.PermissionAdminister
	return []route{
		{Route{http.MethodGet, wire.ConfigurationPath, administer, false, "How the configuration of this replica stands to the one that was agreed on", nil}, server.configuration},
		{Route{http.MethodPost, wire.ConfigurationPath, administer, false, "Adopt what the files of this replica say", nil}, server.adoptConfiguration},
	}
}

func (s server) configuration(*request) (*response, error) {
	if s.Configuration == nil {
		return nil, registry.Errorf(registry.CodeNotFound, "this service reads no configuration")
	}
	return ok(s.Configuration.Status())
}

func (s server) adoptConfiguration(r *request) (*response, error) {
	var body wire.Adoption
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if s.Configuration == nil {
		return nil, registry.Errorf(registry.CodeNotFound, "this service reads no configuration")
	}
	status, err := s.Configuration.Adopt(r.Context(), body.Adopt)
	if err != nil {
		return nil, err
	}
	return ok(status)
}
