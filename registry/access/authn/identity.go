package authn

import (
	"context"

	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/storage"
)

// identity is the sender of a request.
type identity struct {
	principal storage.Principal
	token     string          // ID of the token that was sent; empty for other credentials
	rules     string          // read before the issuer's token was checked
	asked     []storage.Grant // what an OCI client asked for when it got its own token
	derived   bool            // the credential is a token that this service made for an OCI client
}

func (i identity) in(ctx context.Context) context.Context {
	if i.derived {
		ctx = access.WithAsked(ctx, i.asked)
	}
	return storage.WithPrincipal(ctx, i.principal)
}
