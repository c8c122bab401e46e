package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// limitBody limits the body of a request by its route. A caller that the registry is going to refuse gets no large
// body read.
func limitBody(route route, r *request) error {
	limit := cmp.Or(route.Limit, rest.SmallBody)
	switch caller, _ := storage.PrincipalOf(r.Context()); {
	case r.Body == nil || r.Body == http.NoBody:
		return nil
	case r.ContentLength > limit:
		return tooLarge(limit)
	case (r.ContentLength < 0 || r.ContentLength > rest.SmallBody) && !route.Possible(r.Context()):
		return registry.Errorf(registry.CodeForbidden, "%s may not %s: no grant allows it", caller.Name, route.Permission)
	}
	r.Body = http.MaxBytesReader(r.writer, r.Body, limit)
	return nil
}

// tooLarge returns the error for a body of more than limit bytes.
func tooLarge(limit int64) error {
	return refusal{
		error:  registry.Errorf(registry.CodeInvalid, "request body: want at most %d bytes", limit),
		status: http.StatusRequestEntityTooLarge,
	}
}

// raw reads a JSON body. It requires a media type that a browser does not send to another site
// without a preflight request.
func raw(r *request) ([]byte, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != jsonType {
		return nil, refusal{
			error: registry.Errorf(registry.CodeInvalid, "Content-Type is %q: want application/json",
				r.Header.Get("Content-Type")),
			status: http.StatusUnsupportedMediaType,
		}
	}
	data, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, tooLarge(large.Limit)
	case registry.HasCode(err, registry.CodeUnavailable): // too many bodies at once
		return nil, err
	case err != nil:
		return nil, registry.Errorf(registry.CodeInvalid, "request body: %w", err)
	}
	return data, nil
}

// read decodes a JSON body strictly.
func read(r *request, into any) error {
	data, err := raw(r)
	if err != nil {
		return err
	}
	return decode(data, into)
}

// decode decodes JSON strictly.
func decode(data []byte, into any) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return registry.Errorf(registry.CodeInvalid, "request body: empty: want a JSON document")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return registry.Errorf(registry.CodeInvalid, "request body: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return registry.Errorf(registry.CodeInvalid, "request body: more data follows the JSON document")
	}
	return nil
}
