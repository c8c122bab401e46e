// Package config holds what an operator configures in files: environments.yaml with the public
// keys that it names, and access.yaml.
//
// All files are read at one moment, as a [Snapshot]. A [Keeper] reads them again when they
// change. It applies the new content only if it is valid and all processes that use the catalog
// have agreed on it. Files that are half written, broken, or different from those of other
// replicas have no effect on decisions.
package config
