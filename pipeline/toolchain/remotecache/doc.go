// Package remotecache stores finished steps in an OCI repository, for builds on other machines.
//
// Anyone with write access to the repository can put anything there, and what a build takes
// from it will be signed as ours. So an entry counts only if a builder who is trusted for the
// engines being built has signed the key of the step and the digests of its results. Other
// entries are ignored and counted, and the step is done here.
//
// An entry is an image manifest with the tag step-<hex of its key>. Its config is the record of
// the step in canonical JSON. Its first layer is a sigstore bundle whose statement is about the
// digest of that record. One layer for each file follows, in the order of the record.
package remotecache
