// Package validation tests the verifier itself, by its tests alone: engines that are right must pass
// with default limits, and engines with a planted fault must not. testdata/models.py writes small
// models with cases, answers and faults; each is built and verified by the real pipeline and the
// real runtimes. `go test` runs a sample. `make validation` runs all and writes docs/validation.md.
//
// testdata/trained trains models of 13 kinds. The harm that an engine does to the task of its model, and not the size of an error, tells
// which verdicts are wrong: docs/validation-trained.md.
package validation
