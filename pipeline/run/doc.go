// Package run is what the verbs of the pipeline work with: the environment of a run ([Env]: registry, drivers, clock, progress), open
// toolchains, parts on disk, runs of engines on cases, and steps of drivers. It has no verbs.
package run
