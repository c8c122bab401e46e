package server

import (
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// restrictions returns the restriction list in force in an environment.
func (s server) restrictions(r *request) (*response, error) {
	environment, err := environmentOf(r.Values)
	if err != nil {
		return nil, err
	}
	signed, err := s.Registry.Restrictions(r.Context(), environment)
	if err != nil {
		return nil, err
	}
	return ok(signed)
}

func (s server) restrict(r *request) (*response, error) {
	var body wire.Restriction
	if err := read(r, &body); err != nil {
		return nil, err
	}
	signed, err := s.Registry.Restrict(r.Context(), body.Environment, body.Bundle)
	if err != nil {
		return nil, err
	}
	return ok(signed)
}
