// Package distribution serves the OCI distribution 1.1 protocol, /v2/, from the storage ports
// of the registry: bytes in [storage.Blobs], names in [storage.RepositoryRecords].
//
// It parses a path from the right into endpoint and repository, because a repository can be
// named "a/blobs". A table has the required permission and the handler of each endpoint and
// method. Handlers return errors, and one function writes them as the protocol's JSON.
//
// Callers can read only content that belongs to a repository. A blob gets there by an upload of
// its bytes, or by a mount by a caller who may pull it. A blob is visible once it is durable, a
// manifest once everything it needs exists, and a tag last. Uploads are written to disk and
// survive their connection.
//
// Config.Authorize makes all decisions about environments.
//
// Source: https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md.
package distribution
