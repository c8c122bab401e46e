package registry

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
)

// LastingTLS reports whether a request failed because of a TLS handshake that will fail again:
// the CA is unknown here, the certificate is of another name or expired, the server refuses
// ours, or it does not speak TLS at all. A verb that ends with it exits with [ExitFailed].
func LastingTLS(err error) bool {
	var op *net.OpError
	// crypto/tls calls an alert of the other side so. An internal error there may be gone the next time.
	refused := errors.As(err, &op) && op.Op == "remote error" && op.Err.Error() != "tls: internal error"
	return refused || errors.As(err, new(*tls.CertificateVerificationError)) ||
		errors.As(err, new(tls.RecordHeaderError)) || errors.Is(err, http.ErrSchemeMismatch)
}
