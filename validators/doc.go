// Package validators says what a release promises and judges what was measured against
// it: the interface that every engine offers, the limits that it must keep, and the
// verdict. The packages below it measure: parity and accuracy compare outputs,
// performance sums up timings, tensor is the arithmetic, format checks files.
package validators
