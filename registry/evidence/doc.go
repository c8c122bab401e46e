// Package evidence has the signed statements about releases and engines: a [Claim] is a statement with its signer and
// the time at which the history recorded it. It has the predicates, reads them, and decides which claims count.
package evidence
