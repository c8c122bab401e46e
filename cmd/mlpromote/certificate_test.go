//go:build cgo

package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry"
)

// renewing is a server whose certificate is in files.
type renewing struct {
	dir     string
	log     bytes.Buffer
	address string
}

func newRenewing(t *testing.T) *renewing {
	t.Helper()
	r := &renewing{dir: t.TempDir()}
	r.renew(t, "first")
	c, err := newCertificate(filepath.Join(r.dir, "tls.crt"), filepath.Join(r.dir, "tls.key"), slog.New(slog.NewTextHandler(&r.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.NotFoundHandler(), TLSConfig: c.config(), ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	served := make(chan error, 1)
	go func() { served <- srv.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		if err := errors.Join(srv.Close(), <-served); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	r.address = listener.Addr().String()
	return r
}

// renew replaces all files.
func (r *renewing) renew(t *testing.T, name string) {
	t.Helper()
	if err := programtest.Certificate(r.dir, name); err != nil {
		t.Fatal(err)
	}
}

// connect gives the name in the certificate that a new connection sees, checked against a CA.
func (r *renewing) connect(t *testing.T, ca []byte, config *tls.Config) (string, error) {
	t.Helper()
	config.RootCAs = x509.NewCertPool()
	config.RootCAs.AppendCertsFromPEM(ca)
	dialer := tls.Dialer{Config: config}
	conn, err := dialer.DialContext(t.Context(), "tcp", r.address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

func (r *renewing) want(t *testing.T, ca []byte, name string) {
	t.Helper()
	if got, err := r.connect(t, ca, &tls.Config{MinVersion: tls.VersionTLS12}); err != nil || got != name {
		t.Errorf("the certificate is of %q, error %v, want %q", got, err, name)
	}
}

func (r *renewing) file(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A renewed certificate is the one of the next connection. While only one of the files is
// new, or one cannot be read, the one before stays.
func TestCertificateIsRenewed(t *testing.T) {
	t.Parallel()
	r := newRenewing(t)
	ca, oldKey := r.file(t, "ca.pem"), r.file(t, "tls.key")
	r.want(t, ca, "first")

	r.renew(t, "second")
	newCA, newKey := r.file(t, "ca.pem"), r.file(t, "tls.key")
	if err := os.WriteFile(filepath.Join(r.dir, "tls.key"), append(oldKey, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	r.want(t, ca, "first")
	if !strings.Contains(r.log.String(), "was not renewed") || strings.Contains(r.log.String(), "PRIVATE KEY") {
		t.Errorf("the log says %s", r.log.String())
	}
	told := strings.Count(r.log.String(), "was not renewed")
	r.want(t, ca, "first")
	if again := strings.Count(r.log.String(), "was not renewed"); again != told {
		t.Errorf("the same files were complained of %d times, and then %d times", told, again)
	}

	if err := os.WriteFile(filepath.Join(r.dir, "tls.key"), newKey, 0o600); err != nil {
		t.Fatal(err)
	}
	r.want(t, newCA, "second")

	if err := os.Remove(filepath.Join(r.dir, "tls.crt")); err != nil {
		t.Fatal(err)
	}
	r.want(t, newCA, "second")

	// As a Kubernetes secret is renewed: by another folder.
	other := filepath.Join(r.dir, "other")
	if err := programtest.Certificate(other, "third"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.Rename(filepath.Join(other, name), filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	thirdCA, err := os.ReadFile(filepath.Join(other, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	r.want(t, thirdCA, "third")
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	r := newRenewing(t)
	old := &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	if name, err := r.connect(t, r.file(t, "ca.pem"), old); err == nil {
		t.Errorf("TLS 1.1 gives the certificate of %s", name)
	}
}

func TestNewCertificateRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := programtest.Certificate(dir, "x"); err != nil {
		t.Fatal(err)
	}
	crt, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for name, files := range map[string][2]string{"no file": {crt, key + "x"}, "swapped": {key, crt}, "of another": {filepath.Join(dir, "ca.pem"), key}} {
		_, err := newCertificate(files[0], files[1], slog.New(slog.DiscardHandler))
		if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), "--tls-cert") {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
}
