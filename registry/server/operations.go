package server

import (
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// operationsRoutes are only for administrators, because the answer names keys, hosts and the URLs of webhooks.
func operationsRoutes() []route {
	return []route{{
		Route{http.MethodGet, wire.OperationsPath, registry.PermissionAdminister, false, "Storage, garbage collection, queues, replicas, keys and webhooks", nil},
		server.operations,
	}}
}

func (s server) operations(r *request) (*response, error) {
	if s.Operations == nil {
		return nil, registry.Errorf(registry.CodeNotFound, "this service does not say how it is operated")
	}
	found, err := s.Operations(r.Context())
	if err != nil {
		return nil, err
	}
	return ok(found)
}
