package distribution

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
)

// refusal returns the error for a caller without the required permission.
func refusal(h *handler, r *http.Request, a Access, err error) error {
	switch registry.CodeOf(err) {
	case registry.CodeUnauthenticated:
		return problemf(401, codeUnauthorized, "%w", err).with("WWW-Authenticate", h.Challenge(r, a))
	case registry.CodeForbidden, registry.CodePolicy:
		return problemf(403, codeDenied, "%w", err)
	case registry.CodeNotFound:
		return problemf(404, codeNameUnknown, "%w", err)
	}
	return err
}

// explain returns the problem for any error. It shows the text of an error only if its code
// says that it is meant for callers.
func explain(at request, err error) *problem {
	var p *problem
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &tooLarge):
		return problemf(413, codeSizeInvalid, "the body is too large: want at most %d bytes", tooLarge.Limit)
	}
	code := registry.CodeOf(err)
	switch code {
	case registry.CodeNotFound:
		p = problemf(404, at.unknown(), "%s: not found in %s", at.last, at.repository)
	case registry.CodeInvalid:
		p = problemf(400, at.invalid(), "%w", err)
	case registry.CodeDigest:
		p = problemf(400, codeDigestInvalid, "%w", err)
	case registry.CodeConflict, registry.CodePolicy, registry.CodeForbidden, registry.CodeTrust, registry.CodeUnsafe:
		text, _ := registry.TextForClients(err)
		status := code.HTTPStatus()
		if code == registry.CodePolicy { // the protocol answers every refusal with 403
			status = registry.CodeForbidden.HTTPStatus()
		}
		p = problemf(status, codeDenied, "%s", text)
	case registry.CodeFull: // the location of the full storage is not for callers
		p = problemf(507, codeDenied, "the disk of the registry is full: nothing was stored; try again when space is free")
	case registry.CodeUnavailable:
		p = problemf(503, codeTooManyRequests, "the registry is unavailable; try again later").with("Retry-After", "5")
	default:
		p = problemf(500, codeUnsupported, "internal error; see the log of the registry")
	}
	p.cause = err
	return p
}

// unknown returns the code for things that an endpoint does not find.
func (at request) unknown() string {
	switch at.endpoint {
	case blobs:
		return codeBlobUnknown
	case manifests:
		return codeManifestUnknown
	case upload:
		return codeUploadUnknown
	}
	return codeNameUnknown
}

// invalid returns the code for input that an endpoint refuses.
func (at request) invalid() string {
	switch at.endpoint {
	case manifests:
		return codeManifestInvalid
	case uploads, upload:
		return codeUploadInvalid
	}
	return codeDigestInvalid
}

// fail sends an error. The response must not have begun.
func fail(h *handler, w http.ResponseWriter, r *http.Request, at request, err error) {
	p := explain(at, err)
	level := slog.LevelDebug
	if p.status >= 500 && r.Context().Err() == nil { // an error after the caller disconnected is not ours
		level = slog.LevelError
	}
	h.Logger.LogAttrs(r.Context(), level, "request refused", slog.String("method", r.Method),
		slog.String("path", r.URL.Path), slog.Int("status", p.status), slog.Any("error", error(p)))
	for _, field := range p.header {
		w.Header().Set(field[0], field[1])
	}
	type entry struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	body, err := json.Marshal(struct {
		Errors []entry `json:"errors"`
	}{[]entry{{p.code, p.message}}})
	if err != nil {
		body = nil // two strings always encode
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.status)
	_, _ = w.Write(body) // nothing to do if the client disconnected
}

// writeJSON sends a document with status 200.
func writeJSON(w http.ResponseWriter, mediaType string, document any) error {
	body, err := json.Marshal(document)
	if err != nil {
		return registry.Errorf(registry.CodeInternal, "encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", mediaType)
	_, _ = w.Write(body) // the caller is gone
	return nil
}
