// Package registry holds the types, the rules and the ports of mlpromote. It imports no other
// package of the project.
//
// A [Release] is one version of a model: its engines, the limits that they must keep and the
// interface that they offer. Promotion moves its digest. [Evidence] is a signed statement about
// a digest. An [Environment] is a repository prefix with a policy; its [Head] names the current
// release of a model. [Service] moves heads, and only [Policy.Check] decides whether it may.
//
// Data flows one way. [PartStore] and [Content] turn bytes into digests. [Service.Attach] adds
// statements about digests. A promotion reads both, checks the policy, copies the content, and
// moves the head in one transaction of the [Catalog].
package registry
