// Package remedy has the likely causes of failures that people meet in a verification, and what to do next. No verdict rests on them.
package remedy

import (
	"errors"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Remedy is the failure of an engine with its likely cause and what to do next. As an error it is the failure.
type Remedy struct {
	Label string
	Cause string
	Next  string // EngineMark in it stands for the label of the engine
	err   error
}

// EngineMark stands for the flag that names an engine in the next step of a remedy, and RefMark for its ref.
const (
	EngineMark = "{engine}"
	RefMark    = "{ref}"
)

func (r *Remedy) Error() string { return r.err.Error() }

// Unwrap returns the failure.
func (r *Remedy) Unwrap() error { return r.err }

// All returns the remedies that a failure has, the latest first.
func All(failure error) (all []*Remedy) {
	var r *Remedy
	for errors.As(failure, &r) {
		all = append(all, r)
		failure = r.err
	}
	return all
}

// With adds a cause and what to do to the failure of an engine.
func With(failure error, label, likely, next string) error {
	return &Remedy{label, likely, next, failure}
}

// WithHint adds a cause and what to do to the failure of an engine, and to its hints.
func WithHint(failure error, label, likely, next string) error {
	hint := strings.NewReplacer(RefMark, "", EngineMark, "--engine "+label).Replace(next)
	return &Remedy{label, likely, next, registry.WithHint(failure, "%s: %s", likely, hint)}
}
