package rest

import (
	"errors"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
)

// ProblemType is the media type of an error response (RFC 9457).
const ProblemType = "application/problem+json"

// Problem is the body of an error response. An operation can return several errors, in Errors.
// Code and Status belong to the error that decides the exit code.
type Problem struct {
	Type       string          `json:"type"` // documentation page of the code
	Title      string          `json:"title"`
	Status     int             `json:"status"`
	Detail     string          `json:"detail"`
	Code       registry.Code   `json:"code"`
	Errors     []Fault         `json:"errors,omitempty"`
	Promotion  *api.Promotion  `json:"promotion,omitempty"`  // of a refused promotion
	Resolution *api.Resolution `json:"resolution,omitempty"` // of a resolve that found no engine
	RequestID  string          `json:"requestId,omitempty"`  // the request ID in logs

	covered bool
}

// Fault is one error of a Problem.
type Fault struct {
	Code   registry.Code   `json:"code"`
	Detail string          `json:"detail"`
	Hints  []string        `json:"hints,omitempty"`
	Causes []registry.Code `json:"causes,omitempty"` // codes of wrapped errors, which can change the exit code
	// Exit is the exit code of the command, if it differs from the exit code of the codes: 1 if a retry
	// does not help although the code allows one.
	Exit int `json:"exit,omitempty"`
}

// RetryAfter is the default number of seconds before a retry. Clients wait longer with every
// retry.
const RetryAfter = "1"

// typePrefix is the prefix of the type of every problem.
const typePrefix = "https://mlpromote.dev/problems/"

// hiddenProblem replaces the text of internal errors for clients.
const hiddenProblem = "internal error; see the log of the service"

// NewProblem converts an error. It hides the text of errors without a code.
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

// Hidden reports whether the problem hides text from the client, which the service must then
// log.
func (p Problem) Hidden() bool {
	return p.covered || slices.ContainsFunc(p.Errors, func(f Fault) bool { return f.Code == registry.CodeInternal })
}

// faults splits joined errors. It returns at least one.
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
	if !all { // hints are for the operator
		f.Hints = nil
	}
	var known *registry.Error
	switch {
	case f.Code == registry.CodeInternal:
		f.Detail, f.Hints = hiddenProblem, nil
	case !errors.As(err, &known):
		f.Detail = "it took too long"
	}
	for _, cause := range registry.Codes() {
		if cause != f.Code && registry.HasCode(err, cause) {
			f.Causes = append(f.Causes, cause)
		}
	}
	exit := registry.ExitCode(err)
	if exit == registry.ExitAuthentication { // the service has no credential for another registry; the caller has one for the service
		exit = registry.ExitFailed
	}
	if natural := registry.ExitCode(f.err()); exit != natural && natural != registry.ExitAuthentication {
		f.Exit = exit
	}
	return f
}

// Lasting reports whether a retry of the request would fail again, whatever the status is.
func (p Problem) Lasting() bool { return registry.ExitCode(p.Err()) != registry.ExitAgain }

// Err converts the problem back to an error with the same codes and exit code.
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
	if len(causes) > 0 { // they have no text
		err = registry.Errorf(f.Code, "%s%w", f.Detail, silent{errors.Join(causes...)})
	}
	if f.Exit > registry.ExitDone && f.Exit <= registry.ExitAgain {
		err = registry.WithExit(err, f.Exit)
	}
	for _, hint := range slices.Backward(f.Hints) {
		err = registry.WithHint(err, "%s", hint)
	}
	return err
}

// silent is an error without text.
type silent struct{ error }

func (s silent) Error() string { return "" }

func (s silent) Unwrap() error { return s.error }
