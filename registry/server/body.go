package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
)

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
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, refusal{
			error:  registry.Errorf(registry.CodeInvalid, "request body: want at most %d bytes", tooLarge.Limit),
			status: http.StatusRequestEntityTooLarge,
		}
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
