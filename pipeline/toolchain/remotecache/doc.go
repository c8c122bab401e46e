// Package remotecache remembers finished steps in an OCI repository, for builds on other
// machines.
//
// Anyone with write access to the repository can put anything there, and what is taken from it is
// signed as ours. So an entry counts only with the signature of a builder who is trusted
// for what is being built, over the key of the step and the digests of what it made;
// without one it is ignored, counted, and the step is done here.
//
// An entry is an image manifest, tagged step-<hex of its key>: its config is the record of
// the step in canonical JSON, its first layer a sigstore bundle whose statement is about
// the digest of that record, and one layer for each file, in the order of the record.
package remotecache
