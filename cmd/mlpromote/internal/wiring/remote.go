package wiring

import (
	"context"
	"net/url"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
)

// openRemote speaks to a service. Keys are those of this side; the promoter's key stays on the other.
func (l Location) openRemote(ctx context.Context) (*Instance, error) {
	far, api, err := connect.Service{
		URL: l.Registry, TLSCA: l.TLSCA, PolicyFolder: l.PolicyFolder(), Agent: l.agent(), Getenv: l.Getenv, Note: l.Note,
	}.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &Instance{
		Registry: *far, Keys: l.Keyring(), Tokens: api, Configuration: api, Checkpoints: api, Events: api.Events,
		Pages: pages(l.Registry), Agreed: func(context.Context) error { return nil }, Close: func() error { return nil },
	}, nil
}

// pages is the address of a service without a name, a password, a query and a fragment, since it is shown to people. Empty
// if people cannot open it.
func pages(service string) string {
	u, err := url.Parse(service)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	u.User, u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = nil, "", "", "", false
	return u.String()
}

// agent is what this program calls itself in requests.
func (l Location) agent() string { return "mlpromote/" + l.Version }
