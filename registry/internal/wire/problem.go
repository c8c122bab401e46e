package wire

import (
	"context"
	"errors"

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
}

// Fault is one error of a Problem.
type Fault struct {
	Code   registry.Code `json:"code"`
	Detail string        `json:"detail"`
	Hint   string        `json:"hint,omitempty"`
}

// typePrefix begins the type of every problem.
const typePrefix = "https://mlpromote.dev/problems/"

// hidden is what a client sees of an error that is ours alone.
const hidden = "internal error; the service's log says more"

// NewProblem writes an error as a problem. What has no code is not shown.
func NewProblem(err error) Problem {
	p := Problem{Errors: faults(err)}
	worst := 0
	for i, f := range p.Errors {
		if better(f.Code, p.Errors[worst].Code) {
			worst = i
		}
	}
	p.Code, p.Detail = p.Errors[worst].Code, p.Errors[worst].Detail
	p.Type, p.Title, p.Status = typePrefix+string(p.Code), title(p.Code), p.Code.HTTPStatus()
	return p
}

func better(a, b registry.Code) bool {
	one := registry.ExitCode(errors.Join(registry.Errorf(a, "a"), registry.Errorf(b, "b")))
	return one == registry.ExitCode(registry.Errorf(a, "a")) && one != registry.ExitCode(registry.Errorf(b, "b"))
}

func faults(err error) []Fault {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []Fault
		for _, e := range joined.Unwrap() {
			out = append(out, faults(e)...)
		}
		return out
	}
	var known *registry.Error
	if !errors.As(err, &known) || registry.CodeOf(err) == registry.CodeInternal {
		if errors.Is(err, context.DeadlineExceeded) {
			return []Fault{{Code: registry.CodeUnavailable, Detail: "it took too long"}}
		}
		return []Fault{{Code: registry.CodeInternal, Detail: hidden}}
	}
	f := Fault{Code: registry.CodeOf(err), Detail: err.Error()}
	if hints := registry.Hints(err); len(hints) > 0 {
		f.Hint = hints[0]
	}
	return []Fault{f}
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
	return &registry.Error{Code: f.Code, Message: f.Detail, Hint: f.Hint}
}

func title(code registry.Code) string {
	titles := map[registry.Code]string{
		registry.CodeUnavailable: "Not available",
		registry.CodeNotFound:    "Not found",
		registry.CodeConflict:    "Somebody else was first",
		registry.CodeInvalid:     "Invalid request",
		registry.CodeLimit:       "A limit was exceeded",
		registry.CodePolicy:      "The policy says no",
		registry.CodeTrust:       "Not trusted",
		registry.CodeDigest:      "Bytes do not match their digest",
		registry.CodeUnsafe:      "Unsafe format",
		registry.CodeNoEngine:    "No engine for this node",
		registry.CodeWrongNode:   "Not the target",
	}
	if t, ok := titles[code]; ok {
		return t
	}
	return "Internal error"
}
