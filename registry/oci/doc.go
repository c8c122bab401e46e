// Package oci keeps releases, what they are made from and the evidence about them as
// OCI 1.1 content. The shapes of manifests, configs and annotations are its secret:
// callers hand in nouns of package registry and get digests, or digests and get nouns.
//
// A [Store] works over any oras-go target. [Local] is such a target over the two
// storage ports of package registry, so that a directory and a remote registry hold
// the same bytes under the same digests.
//
// # Writing
//
// [Store.PutPart] makes one manifest of files. [Store.Assemble] makes the index of a
// release or of sources over manifests that are there. Everything is canonical JSON
// (RFC 8785) in a fixed order without time or place, so that equal input has equal
// digests on every machine. What is written is read back by the reader's own rules
// before it is stored.
//
// # Reading
//
// Every byte that is used was hashed on the way, and every document has a limit on its
// size, depth and counts. The index of a release repeats what the manifests say, so
// that an engine can be chosen from the index alone; a reader that has both compares
// them. Bytes that are not those of their digest are registry.CodeDigest; documents
// that contradict each other, or name files outside their folder, are
// registry.CodeTrust; what is no document of ours is registry.CodeInvalid.
package oci
