// Package gate finds out who sends a request: before a handler it puts the principal
// into the request's context, and turns away whom it does not know.
//
// A credential is a token of ours, a JWT of an issuer that the service trusts, or a
// short-lived token that OCI clients get for one of these at [TokenPath]. It is sent as a
// bearer token, or as the password of any user, which is how docker login sends it.
package gate
