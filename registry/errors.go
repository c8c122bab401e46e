package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Code says what kind of failure an error is. It is sent over the wire, and it decides the exit
// code of a command and the HTTP status of a response. [errors.Is] compares it.
type Code string

// The exit codes of commands. [ExitCode] chooses if several apply.
const (
	ExitDone           = 0
	ExitFailed         = 1 // the command could not finish, and trying again alone does not help
	ExitInvalid        = 2 // the command line, the spec or an input is wrong
	ExitLimit          = 3 // a limit was exceeded
	ExitPolicy         = 4 // the destination's policy refuses
	ExitTrust          = 5 // signatures, digests, unsafe formats
	ExitNoEngine       = 6 // no engine for this node, or this machine is not the target
	ExitAuthentication = 7 // the caller is unknown or lacks a permission
	ExitNotFound       = 8 // what was named does not exist
	ExitAgain          = 9 // something was busy, unreachable or changed: try again
)

// The codes. The comments give the exit code of a command that fails with one.
const (
	CodeInternal Code = "internal" // 1: a bug or an I/O failure; the message is logged, never shown to a remote client
	// CodeUnavailable (9): a part is unreachable or busy. With [Lastingf] (1): it is not
	// installed, not built in or not configured.
	CodeUnavailable     Code = "unavailable"
	CodeFull            Code = "full"            // 1: no space is left to write; stored content can be read
	CodeNotFound        Code = "not_found"       // 8: the environment, model, release, tag or blob does not exist
	CodeConflict        Code = "conflict"        // 9: a concurrent change; 1 with [Lastingf], if retrying cannot help
	CodeInvalid         Code = "invalid"         // 2: usage, specification or input
	CodeLimit           Code = "limit_exceeded"  // 3: parity, accuracy or performance is outside the release's limits
	CodePolicy          Code = "policy"          // 4: the destination's policy refuses
	CodeForbidden       Code = "forbidden"       // 7: the caller is known and may not do this
	CodeUnauthenticated Code = "unauthenticated" // 7: the caller is not authenticated
	CodeTrust           Code = "untrusted"       // 5: a signature, role or manifest that cannot be trusted
	CodeDigest          Code = "digest_mismatch" // 5: bytes do not match their digest
	CodeUnsafe          Code = "unsafe_format"   // 5: a format that runs code when it is loaded
	CodeNoEngine        Code = "no_engine"       // 6: no engine for this node and runtime
	CodeWrongNode       Code = "wrong_node"      // 6: this machine is not the target
)

// codes maps each code to its exit code, HTTP status and title.
var codes = map[Code]struct {
	exit, status int
	title        string
}{
	CodeInternal:        {ExitFailed, 500, "Internal error"},
	CodeUnavailable:     {ExitAgain, 503, "Service unavailable"},
	CodeFull:            {ExitFailed, 507, "Insufficient storage"},
	CodeNotFound:        {ExitNotFound, 404, "Not found"},
	CodeConflict:        {ExitAgain, 409, "Conflict"},
	CodeInvalid:         {ExitInvalid, 400, "Invalid request"},
	CodeLimit:           {ExitLimit, 422, "Limit exceeded"},
	CodePolicy:          {ExitPolicy, 409, "Policy refusal"},
	CodeForbidden:       {ExitAuthentication, 403, "Permission denied"},
	CodeUnauthenticated: {ExitAuthentication, 401, "Authentication required"},
	CodeTrust:           {ExitTrust, 422, "Untrusted content"},
	CodeDigest:          {ExitTrust, 422, "Digest mismatch"},
	CodeUnsafe:          {ExitTrust, 415, "Unsafe format"},
	CodeNoEngine:        {ExitNoEngine, 404, "No engine for this node"},
	CodeWrongNode:       {ExitNoEngine, 409, "Wrong node"},
}

// HTTPStatus returns the status of a response that reports the code.
func (c Code) HTTPStatus() int {
	if row, ok := codes[c]; ok {
		return row.status
	}
	return codes[CodeInternal].status
}

// Codes lists all codes by name.
func Codes() []Code { return slices.Sorted(maps.Keys(codes)) }

// Title returns the title of problem documents: a standard term for the code.
func (c Code) Title() string {
	if row, ok := codes[c]; ok {
		return row.title
	}
	return codes[CodeInternal].title
}

// Error is the error type of the whole project. Message is complete for a person: what was
// wrong, where, what was expected and what to do. Err is the cause, if any.
type Error struct {
	Code    Code
	Message string
	Hint    string // what to do next, on a separate line; may be empty
	Err     error

	told   bool   // Message already contains the text of Err
	exit   int    // replaces the code's exit code; 0 means the code's own
	public string // replaces the message for remote clients; empty means the message itself
}

// Error returns the message, and the cause if there is one.
func (e *Error) Error() string {
	switch {
	case e.Err == nil || e.told:
		return e.Message
	case e.Message == "":
		return e.Err.Error()
	default:
		return e.Message + ": " + e.Err.Error()
	}
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an *Error with the same code and no message. So errors.Is(err,
// &Error{Code: CodeNotFound}) and [HasCode] work at any depth.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Message == "" && t.Err == nil && t.Code == e.Code
}

// Errorf returns an error with a code. A %w verb keeps the cause for [errors.Is].
func Errorf(code Code, format string, args ...any) error {
	made := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: made.Error(), Err: cause(made), told: true}
}

// Lastingf is Errorf for failures that trying again does not mend, whatever the code. A command
// that fails with it exits with [ExitFailed].
func Lastingf(code Code, format string, args ...any) error {
	return WithExit(Errorf(code, format, args...), ExitFailed)
}

// WithExit replaces the exit code of err. A nil err stays nil.
func WithExit(err error, exit int) error {
	if err == nil {
		return nil
	}
	return &Error{Code: CodeOf(err), Err: err, exit: exit}
}

// cause returns the error that fmt.Errorf wrapped.
func cause(made error) error {
	switch u := made.(type) { //nolint:errorlint // made is what fmt.Errorf gave, not what it wraps
	case interface{ Unwrap() error }:
		return u.Unwrap()
	case interface{ Unwrap() []error }:
		return errors.Join(u.Unwrap()...)
	}
	return nil
}

// WithHint adds what to do next to err. A nil err stays nil.
func WithHint(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &Error{Code: CodeOf(err), Hint: fmt.Sprintf(format, args...), Err: err}
}

// ForClients sets the text that remote clients get in place of err. Use it if the text of err
// has hosts, users or folders that only the operator should see. A nil err stays nil.
func ForClients(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &Error{Code: CodeOf(err), Err: err, public: fmt.Sprintf(format, args...)}
}

// TextForClients returns the text that remote clients get for err. all is false if that is not
// err's own text; the caller should then log err.
func TextForClients(err error) (text string, all bool) {
	text, all = err.Error(), true
	walk(err, func(e *Error) {
		if all && e.public != "" {
			text, all = e.public, false
		}
	})
	return text, all
}

// CodeOf returns the code of the outermost *Error in err's chain, or CodeInternal.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) && e.Code != "" {
		return e.Code
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return CodeUnavailable
	}
	return CodeInternal
}

// HasCode reports whether any error in err's tree has the code.
func HasCode(err error, code Code) bool { return errors.Is(err, &Error{Code: code}) }

// IsUnreadable reports whether err says that content is damaged or missing, and not that the registry
// or the caller has a problem. Lists name what is unreadable and go on, so that one damaged release
// does not hide the others.
func IsUnreadable(err error) bool {
	return err != nil && slices.Contains([]Code{CodeTrust, CodeDigest, CodeUnsafe, CodeInvalid, CodeNotFound, CodeInternal}, CodeOf(err))
}

// OnlyCode reports whether every error that err joins has the code, and so is no failure of another
// kind beside a refusal. An error without a code is a failure. It is false for nil.
func OnlyCode(err error, code Code) bool {
	if err == nil {
		return false
	}
	e, typed := err.(*Error) //nolint:errorlint // each error of the tree is looked at by itself
	if typed && e.Code != "" && e.Code != code {
		return false
	}
	switch u := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() []error }:
		return len(u.Unwrap()) > 0 && !slices.ContainsFunc(u.Unwrap(), func(inner error) bool { return !OnlyCode(inner, code) })
	case interface{ Unwrap() error }:
		if inner := u.Unwrap(); inner != nil {
			return OnlyCode(inner, code)
		}
	}
	return typed && e.Code == code
}

// Hints collects the hints in err's tree, outermost first.
func Hints(err error) []string {
	var hints []string
	walk(err, func(e *Error) {
		if e.Hint != "" {
			hints = append(hints, e.Hint)
		}
	})
	return hints
}

// exitOrder lists exit codes by precedence, for a command to which several apply. What is wrong with
// an input has to be corrected first. ExitAgain is last because it promises that a retry helps with every
// error.
var exitOrder = []int{
	ExitInvalid,
	ExitTrust,
	ExitPolicy,
	ExitLimit,
	ExitNoEngine,
	ExitAuthentication,
	ExitNotFound,
	ExitFailed,
	ExitAgain,
}

// ExitCode returns the exit code of a command that ends with err: 0 for nil, otherwise the
// first in the order 2, 5, 4, 3, 6, 7, 8, 1, 9 that any error in err's tree has.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
	}
	_, exit := deciding(err)
	return exit
}

// DecidingCode returns the code of the error in err's tree that decides the exit code. Of
// several it is the outermost.
func DecidingCode(err error) Code {
	code, _ := deciding(err)
	return code
}

func deciding(err error) (Code, int) {
	var code Code
	exit := 0
	walk(err, func(e *Error) {
		row, ok := codes[e.Code]
		if e.exit != 0 {
			row.exit = e.exit
		}
		if ok && (exit == 0 || slices.Index(exitOrder, row.exit) < slices.Index(exitOrder, exit)) {
			code, exit = e.Code, row.exit
		}
	})
	if exit == 0 {
		code = CodeOf(err)
		exit = cmp.Or(codes[code].exit, ExitFailed) // a code that only a newer service knows is also a failure
	}
	return code, exit
}

// walk visits every *Error in err's tree, depth first.
func walk(err error, visit func(*Error)) {
	if err == nil {
		return
	}
	if e, ok := err.(*Error); ok { //nolint:errorlint // each error of the tree is looked at by itself
		visit(e)
	}
	switch u := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		walk(u.Unwrap(), visit)
	case interface{ Unwrap() []error }:
		for _, inner := range u.Unwrap() {
			walk(inner, visit)
		}
	}
}
