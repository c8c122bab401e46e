package server

import "mlpromote.dev/mlpromote/registry/internal/wire"

// trustBundle returns the newest trust bundle.
func (s server) trustBundle(r *request) (*response, error) {
	signed, err := s.Registry.TrustBundle(r.Context())
	if err != nil {
		return nil, err
	}
	return ok(signed)
}

func (s server) publishTrust(r *request) (*response, error) {
	var body wire.TrustBundle
	if err := read(r, &body); err != nil {
		return nil, err
	}
	signed, err := s.Registry.PublishTrust(r.Context(), body.Bundle)
	if err != nil {
		return nil, err
	}
	return ok(signed)
}
