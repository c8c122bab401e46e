package server

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
)

// answer writes a value as JSON.
func answer(w http.ResponseWriter, status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client is gone if this fails
	return nil
}

// read decodes a JSON body strictly. Its media type is one that a browser does not send
// to another site without asking there first.
func read(r *request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return refusal{
			error:  registry.Errorf(registry.CodeInvalid, "Content-Type is %q: want application/json", r.Header.Get("Content-Type")),
			status: http.StatusUnsupportedMediaType,
		}
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		if _, err = decoder.Token(); err == nil {
			err = errors.New("there is more behind the JSON document")
		} else if errors.Is(err, io.EOF) {
			return nil
		}
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return refusal{error: registry.Errorf(registry.CodeInvalid, "request body: want at most %d bytes", tooLarge.Limit), status: http.StatusRequestEntityTooLarge}
	}
	return registry.Errorf(registry.CodeInvalid, "request body: %w", err)
}
