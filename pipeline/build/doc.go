// Package build makes a release from a spec, or a part of one, and puts parts together.
//
// Data runs one way. A spec and the bytes that it names become a [plan.Plan]; the plan's steps become files; files become
// parts, and from there only digests travel. Statements are signed and attached, and whether they suffice is decided elsewhere, by
// the policy of the registry.
package build
