// Package authn authenticates requests. It puts the principal into the context of a request
// before the handler runs, and refuses unknown callers.
//
// A credential is one of our tokens, a JWT of a trusted issuer, or a short-lived token that OCI
// clients get for one of these at [TokenPath]. Clients send it as a bearer token, or as the
// password of any user, as docker login does.
package authn
