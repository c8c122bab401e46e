// Package oidc lets people, CI jobs and workloads in by the tokens of issuers that they
// have anyway: a company's login, GitHub Actions, GitLab, Kubernetes. A file says which
// issuers are trusted, and what whoever has which claims may do.
//
// An issuer is asked for its keys when its first token comes, so that a service starts
// without it. Keys are kept for [KeysMaxAge]; a token that was signed by a key that is
// not known makes the issuer be asked again, at most every [FetchInterval].
package oidc
