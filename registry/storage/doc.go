// Package storage has the ports behind a registry, and the records that pass through them: content by digest in
// [Blobs], and facts in a [Catalog].
package storage
