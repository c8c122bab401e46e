// Package verify proves on this machine that the engines of a release compute what the reference model computes. Reports are
// data; whether they suffice is decided elsewhere, by the policy of the registry.
package verify
