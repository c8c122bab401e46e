// Package plan decides what a build makes. [New] expands what a spec asks for into a [Plan]: every
// default written out, digests in place of paths. It is pure: equal inputs and tools give equal
// plans, and equal plans give equal releases on one class of machine.
package plan
