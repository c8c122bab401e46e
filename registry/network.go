package registry

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"reflect"
)

// LastingTLS reports whether a request failed because of a TLS handshake that will fail again:
// the CA is unknown here, the certificate is of another name or expired, the server refuses
// ours, or it does not speak TLS at all. A verb that ends with it exits with [ExitFailed].
func LastingTLS(err error) bool {
	alert, refused := alertOf(err)
	return refused && alert != alertInternalError || errors.As(err, new(*tls.CertificateVerificationError)) ||
		errors.As(err, new(tls.RecordHeaderError)) || errors.Is(err, http.ErrSchemeMismatch)
}

// alertInternalError is the alert of a server that failed by itself (RFC 8446, section 6.2), which may be gone the next time.
const alertInternalError = 80

// alertOf returns the TLS alert by which the other side ended a connection. crypto/tls has a type of its own for it, a number without
// a name outside.
func alertOf(err error) (alert uint64, ok bool) {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" {
		return 0, false
	}
	if v := reflect.ValueOf(op.Err); v.Kind() == reflect.Uint8 {
		alert = v.Uint()
	}
	return alert, true
}
