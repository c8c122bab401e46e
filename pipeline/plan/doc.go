// Package plan decides the outputs of a build. [New] expands a spec into a [Plan]: every
// default written out, digests in place of paths. It is pure: equal inputs and tools give equal
// plans, and equal plans give equal releases on one class of machine.
package plan
