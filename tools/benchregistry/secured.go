package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// serveSecured is serve as others reach it: with TLS, and a token to show. Each server has
// a certificate and a token of its own.
func (c config) serveSecured(ctx context.Context, s *server) error {
	certificate, key := filepath.Join(s.dir, "tls.crt"), filepath.Join(s.dir, "tls.key")
	roots, err := makeCertificate(certificate, key)
	if err != nil {
		return err
	}
	s.client = newClient(roots)
	data := filepath.Join(s.dir, "data")
	text, err := exec.CommandContext(ctx, c.mlpromote, "token", "create", "bench", "--allow", "read,push", "--data", data).Output()
	if err != nil {
		return fmt.Errorf("mlpromote token create: %w", err)
	}
	s.token = strings.TrimSpace(string(text))
	return c.startServe(ctx, s, data, "--tls-cert", certificate, "--tls-key", key)
}

// makeCertificate writes a certificate for loopback, which vouches for itself, and gives
// the pool that has it.
func makeCertificate(certificate, key string) (*x509.CertPool, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return roots, errors.Join(
		os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
}
