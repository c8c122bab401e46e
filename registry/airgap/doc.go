// Package airgap carries releases to registries without a network between: [Save] writes a release with its
// evidence into a file, [Checker] checks such a file, and [Checked.Load] lets it in.
//
// The content of the file proves nothing by itself. Checker believes signatures of keys that the receiving
// side trusts, for the environment that it expects, and nothing else. Load brings a release only to where
// builds write: into the first environment. From there the receiving side promotes it by its own policy.
package airgap
