package driverproc

import (
	"encoding/json"
	"fmt"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// Protocol names the protocol and its version, in requests and responses.
const Protocol = "mlpromote.driver/v1"

// Request is what a driver reads from standard input. All paths are absolute.
type Request struct {
	Protocol      string         `json:"protocol"`
	Verb          toolchain.Verb `json:"verb"`
	ID            string         `json:"id"`                      // repeated in the response
	ResponsePath  string         `json:"response_path"`           // the file to write the response to
	ProgressPath  string         `json:"progress_path,omitempty"` // a file that can say how far the job is
	OutDir        string         `json:"out_dir"`                 // the empty directory for the outputs
	Seed          int64          `json:"seed"`
	Threads       int            `json:"threads"`
	Deterministic bool           `json:"deterministic"`
	Library       string         `json:"library,omitempty"` // shared library of the tool, for drivers without an environment of their own
	Inputs        []RequestInput `json:"inputs"`
	Options       map[string]any `json:"options"`
	Run           *RunRequest    `json:"run,omitempty"`
}

// RequestInput is one input file. Files of one role are in one folder under their names.
type RequestInput struct {
	Role string `json:"role"`
	Name string `json:"name"`
	Path string `json:"path"`
}

// RunRequest is [toolchain.RunOptions] with paths: those of the engines, the folder of the case
// shards, and the folder below OutDir that gets one folder for each engine.
type RunRequest struct {
	toolchain.RunOptions
	CasesDir   string `json:"cases_dir"`
	OutputsDir string `json:"outputs_dir"`
}

// Response is what a driver writes to the file that the request names.
type Response struct {
	Protocol string          `json:"protocol"`
	ID       string          `json:"id"`
	OK       bool            `json:"ok"`
	Files    []ResponseFile  `json:"files,omitempty"` // every file below OutDir
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *Error          `json:"error,omitempty"` // if OK is false
}

// ResponseFile is a file that the driver reports as left.
type ResponseFile struct {
	Path      string `json:"path"` // relative to OutDir, with '/'
	Size      int64  `json:"size"`
	SHA256    string `json:"sha256"` // hex
	MediaType string `json:"media_type,omitempty"`
}

// Error is a driver's report of why it did not do the job.
type Error struct {
	Code    ErrorCode `json:"code"`
	Message string    `json:"message"`
	toolchain.Subject
	Detail json.RawMessage `json:"detail,omitempty"`
	Log    string          `json:"-"` // the end of what the driver printed, set by Do
}

// Error returns the message after engine, case and operator: "engine m: case 2 (row 1 of b.safetensors): onnx.Gather: ...".
func (e *Error) Error() string {
	text := e.Message
	if e.Op != "" {
		text = e.Op + ": " + text
	}
	if e.Case != nil {
		text = fmt.Sprintf("case %d (row %d of %s): %s", *e.Case, e.Row, e.Shard, text)
	}
	if e.Engine != "" {
		text = "engine " + e.Engine + ": " + text
	}
	return text
}

// ErrorCode classifies a driver's error.
type ErrorCode string

// The codes of drivers.
const (
	Unavailable       ErrorCode = "unavailable"        // the tool does not work here
	UnsupportedOp     ErrorCode = "unsupported_op"     // an operator that the tool does not support
	UnsupportedFormat ErrorCode = "unsupported_format" // a format that the tool does not support
	BadInput          ErrorCode = "bad_input"          // inputs or options that are wrong or contradict each other
	Untrusted         ErrorCode = "untrusted"          // input that would run code
	TargetMismatch    ErrorCode = "target_mismatch"    // an engine that does not fit this machine
	ToolFailed        ErrorCode = "tool_failed"        // the tool failed
	Limit             ErrorCode = "limit"              // out of memory or file size
)

// codes maps the codes of drivers to those of package registry.
var codes = map[ErrorCode]registry.Code{
	Unavailable:       registry.CodeUnavailable,
	UnsupportedOp:     registry.CodeInvalid,
	UnsupportedFormat: registry.CodeInvalid,
	BadInput:          registry.CodeInvalid,
	Untrusted:         registry.CodeUnsafe,
	TargetMismatch:    registry.CodeWrongNode,
	ToolFailed:        registry.CodeInternal,
	Limit:             registry.CodeUnavailable,
}

// Errorf creates an error that a driver can respond with.
func Errorf(code ErrorCode, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
