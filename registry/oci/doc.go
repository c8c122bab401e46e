// Package oci stores releases, their sources and evidence as OCI 1.1 content. It hides the
// formats of manifests, configs and annotations: callers use types of package registry and
// digests.
//
// A [Store] works over any oras-go target. [Local] is such a target over the two storage ports
// of package registry. So a directory and a remote registry hold the same bytes under the same
// digests.
//
// # Writing
//
// [Store.PutPart] creates one manifest of files. [Store.Assemble] creates the index of a
// release or of sources from existing manifests. Everything is canonical JSON (RFC 8785) in a
// fixed order and without times or paths, so that equal input has equal digests on every
// machine. Before a document is stored, it is checked by the rules of readers.
//
// # Reading
//
// All content is hashed while it is read, and every document has limits on its size, depth and
// counts. The index of a release repeats annotations of the manifests, so that an engine can be
// chosen from the index alone. If both are read, they are compared. Bytes that do not match
// their digest are registry.CodeDigest. Documents that contradict each other, or name files
// outside their folder, are registry.CodeTrust. Documents of another format are
// registry.CodeInvalid.
package oci
