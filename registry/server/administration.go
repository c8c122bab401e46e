package server

import (
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/rest"
)

func getConfiguration(s server, _ *request) (*response, error) {
	if s.Configuration == nil {
		return nil, registry.Errorf(registry.CodeNotFound, "this service does not use configuration files")
	}
	return ok(s.Configuration.Status())
}

func adoptConfiguration(s server, r *request) (*response, error) {
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

func getOperations(s server, r *request) (*response, error) {
	if s.Operations == nil {
		return nil, registry.Errorf(registry.CodeNotFound, "this service does not say how it is operated")
	}
	found, err := s.Operations(r.Context())
	if err != nil {
		return nil, err
	}
	return ok(found)
}

func getOpenAPI(s server, _ *request) (*response, error) {
	return &response{status: http.StatusOK, kind: jsonType, body: s.document}, nil
}
