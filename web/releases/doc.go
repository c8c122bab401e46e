// Package releases makes the pages about releases: a release, an engine, and the comparison of two releases. Other pages read
// releases by it too: the evidence, the engines, and the engine for each node type.
package releases
