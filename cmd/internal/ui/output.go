package ui

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// With --output json, stdout holds one document whatever happens. That of a verb that
// fails has the key error, beside what else the verb found out: the decision of a refused
// promotion, the reports of a verification that failed. docs/reference/output.schema.json
// has the schema of each.

// Failure is why a verb failed.
type Failure struct {
	Code    registry.Code `json:"code"`
	Message string        `json:"message"` // a line for each error
	Hint    string        `json:"hint,omitempty"`
	Subject string        `json:"subject,omitempty"` // what the verb was about: a ref, a model, a file
	Exit    int           `json:"exit"`              // the exit code
}

// failed is the document of a failure without anything else to say.
type failed struct {
	Error Failure `json:"error"`
}

// failedList is that of a verb whose result is a list, as far as there is one.
type failedList struct {
	failed
	Result any `json:"result"`
}

func newFailure(err error, subject string) Failure {
	return Failure{
		Code: registry.DecidingCode(err), Message: strings.Join(messages(err), "\n"),
		Hint: strings.Join(registry.Hints(err), "\n"), Subject: subject, Exit: registry.ExitCode(err),
	}
}

// Partial is what a verb found out before it fails: a result that text has no place for.
func (u *UI) Partial(value any) {
	if u.document == nil {
		u.document = value
	}
}

// Finish writes the document of a verb that ended with err, about subject.
func (u *UI) Finish(err error, subject string) error {
	if !u.JSON || u.document == nil && err == nil {
		return nil
	}
	indent := "  "
	if u.Streams {
		indent = ""
	}
	if err == nil {
		return u.write(u.document, indent)
	}
	document, failed := withError(u.document, failed{newFailure(err, subject)})
	if failed != nil {
		return failed
	}
	return u.write(document, indent)
}

// withError adds the error to what a verb found out.
func withError(found any, f failed) (any, error) {
	if found == nil {
		return f, nil
	}
	text, err := json.Marshal(found)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(text, []byte("{")) {
		return failedList{f, json.RawMessage(text)}, nil
	}
	first, err := json.Marshal(f)
	if err != nil || len(text) == len("{}") {
		return json.RawMessage(first), err
	}
	return json.RawMessage(slices.Concat(first[:len(first)-1], []byte(","), text[1:])), nil
}

// write writes one document. An empty indent is one line.
func (u *UI) write(value any, indent string) error {
	var document strings.Builder
	encoder := json.NewEncoder(&document)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := io.WriteString(u.Stdout, seenJSON(document.String()))
	return err
}

// AsksForJSON reports whether a command line asks for JSON, also one with mistakes.
func AsksForJSON(args []string) bool {
	for i, arg := range args {
		value, ok := strings.CutPrefix(arg, "--output=")
		if arg == "--output" && i+1 < len(args) {
			value, ok = args[i+1], true
		}
		if ok {
			return value == "json"
		}
	}
	return false
}

// Result is the answer: text, whose lines are ours, or value as JSON. With JSON it is
// written when the verb ends, together with the error that it may end with.
func (u *UI) Result(text string, value any) error {
	u.Close()
	if u.JSON {
		u.document = value
		return nil
	}
	return u.writeMarked(strings.TrimRight(text, "\n") + "\n")
}

// Line is one of many answers, which are written as they come: with JSON, each on a line.
func (u *UI) Line(text string, value any) error {
	u.Close()
	if u.Streams = true; u.JSON {
		return u.write(value, "")
	}
	return u.writeMarked(strings.TrimRight(text, "\n") + "\n")
}
