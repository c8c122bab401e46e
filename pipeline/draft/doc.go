// Package draft recognizes a model and writes a first spec for it.
package draft
