// Package goldenset has the golden outputs of a reference model, the cases that are compared with them, and how far numbers may
// differ that were computed by somebody else.
package goldenset
