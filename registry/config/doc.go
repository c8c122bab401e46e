// Package config holds what an operator configures in files: environments.yaml with the public
// keys that it names, and access.yaml.
//
// All files are read at one moment, as a [Snapshot]. A [Keeper] reads them again when they
// change. It uses what it read only if that is valid and all processes on the catalog agreed
// on it. So files that are half changed, broken, or different from those of other replicas
// change no decision.
package config
