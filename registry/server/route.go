package server

import (
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/rest"
)

// route is an operation with its handler.
type route struct {
	rest.Row
	query  []string // allowed query parameters
	handle handler
}

// handler answers the requests of a route.
type handler func(s server, r *request) (*response, error)

// validate refuses a route without a permission and an incomplete one.
func (r route) validate() error {
	switch {
	case r.Permission == "":
		return registry.Errorf(registry.CodeInvalid, "server: route %s %s has no permission", r.Method, r.Path)
	case r.handle == nil || r.Method == "" || !strings.HasPrefix(r.Path, rest.Prefix+"/"):
		return registry.Errorf(registry.CodeInvalid, "server: route %q %q is incomplete", r.Method, r.Path)
	}
	return nil
}

// modelPrefix is the prefix of paths of operations on a model.
const modelPrefix = rest.ModelsPath + "{model}/"
