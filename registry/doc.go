// Package registry is the ground of the registry: errors with their codes, references, digests, texts, and the decoding
// of signed documents. It imports no other package of the module.
//
// Above it, each package imports those before it: artifact (releases and machines), evidence (statements about them),
// restriction (what they may not be made from), trust (who may sign), policy (whether a release may be promoted),
// history (events and heads), storage (the ports) and api (the operations). Package service carries them out.
package registry
