package access

import (
	"context"
	"sync/atomic"

	"mlpromote.dev/mlpromote/registry/storage"
)

// Open decides whether callers may do everything without a token. They may until an
// administrator makes a first token or configures issuers. From then on a token is required,
// even if that token expires or is revoked, or the issuers are removed while the service runs.
// Open is safe for concurrent use. A nil Open always requires a token.
type Open struct {
	tokens  storage.Tokens
	issuers func() bool
	closed  atomic.Bool
}

// NewOpen makes an Open. issuers reports whether issuers are configured, even wrongly. It is
// called for every request.
func NewOpen(tokens storage.Tokens, issuers func() bool) *Open {
	return &Open{tokens: tokens, issuers: issuers}
}

// ToAll reports whether callers may do everything now. It lists the tokens on every call,
// since other processes make tokens too. Errors: those of ListTokens.
func (o *Open) ToAll(ctx context.Context) (bool, error) {
	if o == nil || o.closed.Load() {
		return false, nil
	}
	if o.issuers() {
		o.closed.Store(true)
		return false, nil
	}
	tokens, err := o.tokens.ListTokens(ctx)
	if err != nil {
		return false, err
	}
	if len(tokens) > 0 {
		o.closed.Store(true)
	}
	return len(tokens) == 0, nil
}

// Anonymous is the principal of every caller while a service is open. Its grants must not be changed.
func Anonymous() storage.Principal { return storage.Principal{Name: "anonymous", Grants: everything} }

// everything is made once, since an open service needs it for every request.
var everything = []storage.Grant{
	{Permissions: []storage.Permission{storage.PermissionAdminister}, Environment: "**", Model: "**"}}
