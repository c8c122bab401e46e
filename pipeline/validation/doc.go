// Package validation tests the verifier itself, by its tests alone: engines that are right must pass
// with default limits, and engines with a planted fault must not. testdata/models.py writes small
// models with cases, answers and faults; each is built and verified by the real pipeline and the
// real runtimes. `go test` runs a sample. `make validation` runs all and writes docs/validation.md.
package validation
