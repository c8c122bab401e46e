// Package oidc authenticates people, CI jobs and workloads by the tokens of other issuers: a
// company's login, GitHub Actions, GitLab, Kubernetes. The file access.yaml lists the trusted
// issuers and the grants for callers with matching claims.
//
// The keys of an issuer are fetched when its first token arrives, so a service starts without
// the issuer. Keys are cached for [KeysMaxAge]. A token with an unknown key causes a new
// request, at most one per [FetchInterval].
package oidc
