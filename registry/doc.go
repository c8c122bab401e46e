// Package registry is the ground floor of mlpromote: its nouns, its rules and the
// ports through which the rest of the program is reached. It imports no other
// package of the project.
//
// A [Release] is one version of a model: engines, the limits that they must keep,
// the interface that they offer. Its digest is what gets promoted. [Evidence] is a
// signed statement about a digest. An [Environment] is a repository prefix with a
// policy; its [Head] names the release that a model has there. [Service] moves
// heads, and [Policy.Check] alone decides whether it may.
//
// The flow is one way. Bytes become digests in [Parts] and [Content]; statements about
// digests come in through [Service.Attach]; a promotion reads both, asks the policy,
// copies, and moves the head in one transaction of the [Catalog].
package registry
