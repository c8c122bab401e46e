package server

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/rest"
)

// Configuration reports the configuration of a service and makes a change of it the agreed
// configuration of all replicas.
type Configuration interface {
	Status() history.ConfigurationStatus
	// Adopt makes the configuration in the files of this service the agreed one. want is the
	// expected configuration of the files. Errors: CodeConflict if the files differ from it.
	Adopt(ctx context.Context, want history.Configuration) (history.ConfigurationStatus, error)
}

func (s server) configuration(*request) (*response, error) {
	if s.Configuration == nil {
		return nil, registry.Errorf(registry.CodeNotFound, "this service does not use configuration files")
	}
	return ok(s.Configuration.Status())
}

func (s server) adoptConfiguration(r *request) (*response, error) {
	var body rest.Adoption
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if s.Configuration == nil {
		return nil, registry.Errorf(registry.CodeNotFound, "this service does not use configuration files")
	}
	status, err := s.Configuration.Adopt(r.Context(), body.Adopt)
	if err != nil {
		return nil, err
	}
	return ok(status)
}
