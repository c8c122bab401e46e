// Package artifact has what is built and where it runs: a [Release] with its engines and parts, the [Target] of an
// engine, the [Node] that an engine runs on, and whether one fits the other.
package artifact
