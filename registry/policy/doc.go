// Package policy decides whether a release may be promoted or used. An [Environment] has a [Policy], and [Policy.Check]
// judges each requirement of the table in requirements.go by the evidence that counts.
package policy
