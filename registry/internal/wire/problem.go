package wire

import (
	"errors"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// ProblemType is the media type of an error (RFC 9457).
const ProblemType = "application/problem+json"

// Problem is an error on the wire. Errors are several where an operation collects
// reasons; Code and Status are those that decide the exit code.
type Problem struct {
	Type       string               `json:"type"` // docs page of the code
	Title      string               `json:"title"`
	Status     int                  `json:"status"`
	Detail     string               `json:"detail"`
	Code       registry.Code        `json:"code"`
	Errors     []Fault              `json:"errors,omitempty"`
	Promotion  *registry.Promotion  `json:"promotion,omitempty"`  // of a promotion that was refused
	Resolution *registry.Resolution `json:"resolution,omitempty"` // of a resolve without an answer
	RequestID  string               `json:"requestId,omitempty"`  // what logs call the request

	covered bool
}

// Fault is one error of a Problem.
type Fault struct {
	Code   registry.Code   `json:"code"`
	Detail string          `json:"detail"`
	Hints  []string        `json:"hints,omitempty"`
	Causes []registry.Code `json:"causes,omitempty"` // codes of what Code wraps, which may ask for another exit code
}

// RetryAfter is after how many seconds to come again where nothing says it better. Clients
// wait longer with every try.
const RetryAfter = "1"

// typePrefix begins the type of every problem.
const typePrefix = "https://mlpromote.dev/problems/"

// hidden is what a client sees of an error that is ours alone.
const hidden = "internal error; the service's log says more"

// NewProblem writes an error as a problem. What has no code is not shown.
func NewProblem(err error) Problem {
	p := Problem{Errors: faults(err)}
	_, all := registry.TextForClients(err)
	p.covered = !all
	exit := registry.ExitCode(p.Err())
	decides := slices.IndexFunc(p.Errors, func(f Fault) bool { return registry.ExitCode(f.err()) == exit })
	p.Code, p.Detail = p.Errors[decides].Code, p.Errors[decides].Detail
	p.Type, p.Title, p.Status = typePrefix+string(p.Code), p.Code.Title(), p.Code.HTTPStatus()
	return p
}

// Hidden reports whether the problem keeps something from the client, which then has
// to be in a log.
func (p Problem) Hidden() bool {
	return p.covered || slices.ContainsFunc(p.Errors, func(f Fault) bool { return f.Code == registry.CodeInternal })
}

// faults splits joined errors, so that each is told by itself. It gives at least one.
func faults(err error) []Fault {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 0 {
		var out []Fault
		for _, e := range joined.Unwrap() {
			out = append(out, faults(e)...)
		}
		return out
	}
	return []Fault{fault(err)}
}

func fault(err error) Fault {
	text, all := registry.TextForClients(err)
	f := Fault{Code: registry.CodeOf(err), Detail: text, Hints: registry.Hints(err)}
	if !all { // they are for the operator too
		f.Hints = nil
	}
	var known *registry.Error
	switch {
	case f.Code == registry.CodeInternal:
		f.Detail, f.Hints = hidden, nil
	case !errors.As(err, &known):
		f.Detail = "it took too long"
	}
	for _, cause := range registry.Codes() {
		if cause != f.Code && registry.HasCode(err, cause) {
			f.Causes = append(f.Causes, cause)
		}
	}
	return f
}

// Err gives the error back: errors.Is and the exit code are as they were on the other side.
func (p Problem) Err() error {
	if len(p.Errors) == 0 {
		return Fault{Code: p.Code, Detail: p.Detail}.err()
	}
	all := make([]error, len(p.Errors))
	for i, f := range p.Errors {
		all[i] = f.err()
	}
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}

func (f Fault) err() error {
	causes := make([]error, len(f.Causes))
	for i, code := range f.Causes {
		causes[i] = &registry.Error{Code: code}
	}
	err := error(&registry.Error{Code: f.Code, Message: f.Detail})
	if len(causes) > 0 { // they have no text of their own
		err = registry.Errorf(f.Code, "%s%w", f.Detail, silent{errors.Join(causes...)})
	}
	for _, hint := range slices.Backward(f.Hints) {
		err = registry.WithHint(err, "%s", hint)
	}
	return err
}

// silent is an error that adds nothing to a message.
type silent struct{ error }

func (s silent) Error() string { return "" }
func (s silent) Unwrap() error { return s.error }
