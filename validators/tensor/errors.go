package tensor

import (
	"errors"
	"fmt"
)

// The kinds of error of tensors and of their files, for errors.Is. The message of an error names the
// mistake and the remedy; its kind classifies the cause. Errors of the operating system or of a
// reader are wrapped unchanged.
var (
	// ErrMalformed: the bytes violate the rules of their format, or a tensor's shape, dtype and
	// data contradict each other.
	ErrMalformed = errors.New("malformed tensor data")
	// ErrLimit: the bytes may be well formed, but require more than Limits allow.
	ErrLimit = errors.New("tensor limit exceeded")
	// ErrUnsafe: the bytes are a pickle, which runs code when it is loaded, or an archive with
	// members that would be written outside the target folder.
	ErrUnsafe = errors.New("unsafe tensor format")
	// ErrUnsupported: a dtype or file feature that this package does not read.
	ErrUnsupported = errors.New("unsupported tensor feature")
	// ErrMismatch: tensors, indices or names that do not fit together.
	ErrMismatch = errors.New("tensors do not fit together")
)

// fault is an error with a kind, which errors.Is finds and the message omits.
type fault struct {
	kind error
	msg  string
}

func (f *fault) Error() string { return f.msg }
func (f *fault) Unwrap() error { return f.kind }

// Errorf returns an error of a kind, which the message does not name.
func Errorf(kind error, format string, args ...any) error {
	return &fault{kind: kind, msg: fmt.Sprintf(format, args...)}
}
