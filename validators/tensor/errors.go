package tensor

import (
	"errors"
	"fmt"
)

// The kinds of error that this package returns, for errors.Is. The message of
// an error says what was wrong and what to do; its kind says whose fault it is.
// Errors of the operating system or of a reader are wrapped as they are.
var (
	// ErrMalformed: the bytes break the rules of the format that they claim,
	// or a tensor's shape, dtype and data contradict each other.
	ErrMalformed = errors.New("malformed tensor data")
	// ErrLimit: the bytes may be well formed, but ask for more than Limits allow.
	ErrLimit = errors.New("tensor limit exceeded")
	// ErrUnsafe: the bytes are a pickle, which runs code when it is loaded, or an archive
	// whose members would be written elsewhere than it is unpacked to.
	ErrUnsafe = errors.New("unsafe tensor format")
	// ErrUnsupported: a dtype or file feature that this package does not read.
	ErrUnsupported = errors.New("unsupported tensor feature")
	// ErrMismatch: tensors, indices or names that do not fit together.
	ErrMismatch = errors.New("tensors do not fit together")
)

// fault is an error with a kind that errors.Is finds and the message leaves out.
type fault struct {
	kind error
	msg  string
}

func (f *fault) Error() string { return f.msg }
func (f *fault) Unwrap() error { return f.kind }

func faultf(kind error, format string, args ...any) error {
	return &fault{kind: kind, msg: fmt.Sprintf(format, args...)}
}
