package distribution

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
)

// The codes of the protocol, section "Error Codes". There are no others.
const (
	codeBlobUnknown         = "BLOB_UNKNOWN"
	codeUploadInvalid       = "BLOB_UPLOAD_INVALID"
	codeUploadUnknown       = "BLOB_UPLOAD_UNKNOWN"
	codeDigestInvalid       = "DIGEST_INVALID"
	codeManifestBlobUnknown = "MANIFEST_BLOB_UNKNOWN"
	codeManifestInvalid     = "MANIFEST_INVALID"
	codeManifestUnknown     = "MANIFEST_UNKNOWN"
	codeNameInvalid         = "NAME_INVALID"
	codeNameUnknown         = "NAME_UNKNOWN"
	codeSizeInvalid         = "SIZE_INVALID"
	codeUnauthorized        = "UNAUTHORIZED"
	codeDenied              = "DENIED"
	codeUnsupported         = "UNSUPPORTED"
	codeTooManyRequests     = "TOOMANYREQUESTS"
)

// problem is an error as a caller sees it.
type problem struct {
	status  int
	code    string
	message string
	header  [][2]string
	cause   error // for the log alone
}

func (p *problem) Error() string {
	if p.cause != nil {
		return p.message + ": " + p.cause.Error()
	}
	return p.message
}

func (p *problem) Unwrap() error { return p.cause }

// problemf makes a problem. Its message is shown to the caller.
func problemf(status int, code, format string, args ...any) *problem {
	return &problem{status: status, code: code, message: fmt.Errorf(format, args...).Error()}
}

// with adds a header to the response.
func (p *problem) with(key, value string) *problem {
	p.header = append(p.header, [2]string{key, value})
	return p
}

// refusal is the answer to who may not do something.
func (h *handler) refusal(r *http.Request, a Access, err error) error {
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

// explain makes a problem of any error. What the message of an error says is shown only
// where its code promises that it is meant for callers.
func explain(at request, err error) *problem {
	var p *problem
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &tooLarge):
		return problemf(413, codeSizeInvalid, "the body has more than the %d bytes that are taken", tooLarge.Limit)
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
		if code == registry.CodePolicy { // this protocol answers every refusal with 403
			status = registry.CodeForbidden.HTTPStatus()
		}
		p = problemf(status, codeDenied, "%s", text)
	case registry.CodeFull: // where there is no space is not for callers to know
		p = problemf(507, codeDenied, "the registry's disk is full: nothing was stored; try again when there is space")
	case registry.CodeUnavailable:
		p = problemf(503, codeTooManyRequests, "the registry cannot do this now; try again later").with("Retry-After", "5")
	default:
		p = problemf(500, codeUnsupported, "internal error; the registry's log says more")
	}
	p.cause = err
	return p
}

// unknown is the code of what an endpoint does not find.
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

// invalid is the code of what an endpoint cannot take.
func (at request) invalid() string {
	switch at.endpoint {
	case manifests:
		return codeManifestInvalid
	case uploads, upload:
		return codeUploadInvalid
	}
	return codeDigestInvalid
}

// fail answers with an error. Nothing has been written yet.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, at request, err error) {
	p := explain(at, err)
	level := slog.LevelDebug
	if p.status >= 500 && r.Context().Err() == nil { // a caller who is gone is no failure of ours
		level = slog.LevelError
	}
	h.Logger.LogAttrs(r.Context(), level, "request refused",
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", p.status), slog.Any("error", error(p)))
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
	_, _ = w.Write(body) // whom should we tell?
}

// writeJSON answers 200 with a document.
func writeJSON(w http.ResponseWriter, mediaType string, document any) error {
	body, err := json.Marshal(document)
	if err != nil {
		return registry.Errorf(registry.CodeInternal, "encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", mediaType)
	_, _ = w.Write(body) // the caller is gone
	return nil
}
