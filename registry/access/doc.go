// Package access enforces permissions on a registry, with the rules of [registry.Principal].
// [Guard] wraps a registry.Interface, and [Repositories] protects the OCI endpoint.
//
// The principal is in the context. Package authn puts it there, or a service that allows
// anonymous access. A context without a principal has no permissions.
package access
