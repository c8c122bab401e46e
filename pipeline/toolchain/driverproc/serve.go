package driverproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// maxRequestBytes bounds a request; it holds paths and options.
const maxRequestBytes = 16 << 20

// Handler does the job of a request in the child, leaves its files below r.OutDir and returns
// Response.Result.
type Handler func(ctx context.Context, r Request) (result any, err error)

// Serve reads one request from stdin, calls the handler, writes the response and returns the
// exit status: 0 done, 1 failed, 2 if no response could be written. It reports errors that are
// not an *Error as tool_failed.
func Serve(ctx context.Context, stdin io.Reader, stderr io.Writer, handle Handler) int {
	var request Request
	if err := json.NewDecoder(io.LimitReader(stdin, maxRequestBytes)).Decode(&request); err != nil {
		fmt.Fprintln(stderr, "request:", err)
		return 2
	}
	response := answer(ctx, request, handle)
	text, err := json.Marshal(response)
	if err == nil {
		err = os.WriteFile(request.ResponsePath, text, 0o600)
	}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "response:", err)
		return 2
	case !response.OK:
		return 1
	}
	return 0
}

func answer(ctx context.Context, request Request, handle Handler) Response {
	response := Response{Protocol: Protocol, ID: request.ID}
	result, files, err := work(ctx, request, handle)
	if err != nil {
		if !errors.As(err, &response.Error) {
			response.Error = Errorf(ToolFailed, "%v", err)
		}
		return response
	}
	response.OK, response.Result, response.Files = true, result, files
	return response
}

func work(ctx context.Context, request Request, handle Handler) (json.RawMessage, []ResponseFile, error) {
	if request.Protocol != Protocol {
		return nil, nil, Errorf(BadInput, "protocol %q: this driver speaks %s", request.Protocol, Protocol)
	}
	result, err := handle(ctx, request)
	if err != nil {
		return nil, nil, err
	}
	text, err := json.Marshal(result)
	if err != nil {
		return nil, nil, err
	}
	left, err := toolchain.Collect(request.OutDir)
	if err != nil {
		return nil, nil, err
	}
	var files []ResponseFile
	for _, f := range left {
		files = append(files, ResponseFile{Path: f.Name, Size: f.Size, SHA256: f.Digest.Encoded()})
	}
	return text, files, nil
}
