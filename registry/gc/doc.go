// Package gc deletes content that nothing needs. [Retention] decides which releases stay in addition
// to heads and tags. A [Collector] marks the records of unreferenced manifests and blobs, deletes
// those that are still marked one grace period later, and then deletes bytes that no repository
// holds. [SafeStore] makes writes safe while collectors run. A [Schedule] runs a collector in one
// replica out of several.
package gc
