package distribution

import (
	"fmt"
)

// The codes of the protocol, section "Error Codes". It has no others.
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

// problem is an error in the form that callers get.
type problem struct {
	status  int
	code    string
	message string
	header  [][2]string
	cause   error // only logged
}

func (p *problem) Error() string {
	if p.cause != nil {
		return p.message + ": " + p.cause.Error()
	}
	return p.message
}

func (p *problem) Unwrap() error { return p.cause }

// problemf returns a problem. Its message is shown to the caller.
func problemf(status int, code, format string, args ...any) *problem {
	return &problem{status: status, code: code, message: fmt.Errorf(format, args...).Error()}
}

// with adds a header to the response.
func (p *problem) with(key, value string) *problem {
	p.header = append(p.header, [2]string{key, value})
	return p
}
