// Package cases reads, generates and imports cases: the inputs on which engines are compared with
// the reference model, and the inputs of calibration. [Read] and [Generate] return a [Set] that is
// checked against the interface of the model. [Import] makes a folder of cases from a file.
package cases
