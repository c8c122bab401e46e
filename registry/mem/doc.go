// Package mem implements the storage ports of the registry in maps, for tests: quick to make, to
// copy and to break. Its rules come from registry/internal/catalog. Nothing outlives the
// process.
package mem
