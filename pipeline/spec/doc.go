// Package spec reads mlpromote.yaml: which model, what it is judged by, for which
// targets it is built, in which variants, and within which limits.
//
// The file has a small form and a grown-up one with the same keys: where a mapping
// has one thing to say, the thing alone will do. [Load] reads both into one [Spec],
// checks everything that can be known without opening the model, and points at what
// is wrong by line and column. Paths keep the form in which they were written next
// to the absolute one, so that nothing of this machine gets into a plan.
//
// [Schema] describes the file to editors, and [Draft] writes a first one.
package spec

//go:generate go run ./internal/writeschema ../../docs/reference/mlpromote.schema.json
