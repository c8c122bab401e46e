package server

import "mlpromote.dev/mlpromote/registry"

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
