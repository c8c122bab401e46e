// Package access enforces permissions on a registry, with the rules of [storage.Principal].
// [Guard] wraps a api.Interface, and [Repositories] protects the OCI endpoint.
//
// The principal is in the context. Package authn puts it there, or a service that allows
// anonymous access. A context without a principal has no permissions.
package access
