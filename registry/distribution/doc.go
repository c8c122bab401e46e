// Package distribution serves the OCI distribution 1.1 protocol, /v2/, over the storage
// ports of the registry: bytes in [registry.Blobs], names in [registry.Refs].
//
// A path is read from the right into a repository and what is meant in it, since a
// repository may well be called "a/blobs". A table then says, for each endpoint and
// method, what the caller must be allowed to do and which function answers. Those
// functions return errors, and one place alone writes them, as the protocol's JSON.
//
// What can be read is what belongs to a repository, never what the store happens to
// hold: a blob comes in by its bytes or is mounted by somebody who may pull it. A blob
// is visible once all of it is durable, a manifest once all that it needs is there, and
// a tag last. Uploads are streams to disk that survive their connection.
//
// The handler decides nothing about environments: Config.Authorize does.
//
// Source: https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md.
package distribution
