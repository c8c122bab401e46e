package host

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// TrustOwn returns the settings of a client that trusts only the certificate in a file, for any
// host name: the certificate of the service on this machine rarely names 127.0.0.1. If that
// certificate is not valid, the service keeps using its previous one, and the client accepts
// every certificate, so it must send no secrets. Errors: CodeInvalid.
func TrustOwn(certFile string, now storage.Clock) (*tls.Config, error) {
	text, err := os.ReadFile(certFile)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: want a certificate in PEM", certFile)
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: %w", certFile, err)
	}
	refused := inTime(leaf, now()) != nil
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection accepts one certificate alone, and callers send nothing secret
		VerifyConnection: func(s tls.ConnectionState) error {
			if !refused && (len(s.PeerCertificates) == 0 || !bytes.Equal(s.PeerCertificates[0].Raw, block.Bytes)) {
				return errors.New("the server shows another certificate than the one in " + certFile)
			}
			return nil
		},
	}, nil
}
