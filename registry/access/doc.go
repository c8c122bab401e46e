// Package access is who may do what with a registry. The rules are those of
// [registry.Principal]; this package asks them, at the two doors there are: [Guard]
// stands before a registry.Interface, and [Repositories] before the OCI endpoint.
//
// Who asks is in the context. It is put there by the package gate, which knows tokens,
// or by a service that lets everybody in. Nothing is allowed to a context without one.
package access
