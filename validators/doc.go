// Package validators defines what a release promises and evaluates measurements against it: the
// interface of every engine, the limits that it must keep, and the verdict. The packages below
// it measure: parity and accuracy compare outputs, performance summarizes timings, tensor does
// the arithmetic, format checks files.
package validators
