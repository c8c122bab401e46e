package host

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/telemetry"
)

// renewing is a server whose certificate is in files.
type renewing struct {
	dir     string
	log     bytes.Buffer
	address string
	now     atomic.Pointer[time.Time]
	metrics *telemetry.Telemetry
}

func newRenewing(t *testing.T) *renewing {
	t.Helper()
	r := &renewing{dir: t.TempDir(), metrics: telemetry.New("", nil)}
	r.at(time.Now())
	r.renew(t, "first")
	c, err := LoadCertificate(filepath.Join(r.dir, "tls.crt"), filepath.Join(r.dir, "tls.key"),
		func() time.Time { return *r.now.Load() }, slog.New(slog.NewTextHandler(&r.log, nil)), r.metrics.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.NotFoundHandler(), TLSConfig: c.TLSConfig(),
		ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
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

func (r *renewing) at(now time.Time) { r.now.Store(&now) }

// sample is a metric as Prometheus would read it.
func (r *renewing) sample(t *testing.T, name string) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	r.metrics.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	_, rest, _ := strings.Cut(recorder.Body.String(), "\n"+name+" ")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// renew replaces all files.
func (r *renewing) renew(t *testing.T, name string) {
	t.Helper()
	if err := registrytest.Certificate(r.dir, name); err != nil {
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
	r.wantAt(t, ca, name, time.Now())
}

// wantAt is want for a client whose clock says something else.
func (r *renewing) wantAt(t *testing.T, ca []byte, name string, at time.Time) {
	t.Helper()
	if got, err := r.connect(t, ca, &tls.Config{MinVersion: tls.VersionTLS12, Time: func() time.Time { return at }}); err != nil || got != name {
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
	if err := registrytest.Certificate(other, "third"); err != nil {
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

// A certificate that clients would refuse does not replace one that they take. It waits until
// it is valid, or the one before is not.
func TestCertificateIsNotReplacedByAnInvalidOne(t *testing.T) {
	t.Parallel()
	r := newRenewing(t)
	first, begin := r.file(t, "ca.pem"), *r.now.Load()
	r.want(t, first, "first")

	for name, valid := range map[string][2]time.Duration{"expired": {-2 * time.Hour, -time.Hour}, "not yet valid": {30 * time.Minute, 3 * time.Hour}} {
		if err := registrytest.CertificateFor(r.dir, name, begin.Add(valid[0]), begin.Add(valid[1])); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			r.want(t, first, "first")
		}
		if got := r.sample(t, "mlpromote_tls_certificate_refused"); got != "1" {
			t.Errorf("beside a certificate that is %s, mlpromote_tls_certificate_refused: got %q, want 1", name, got)
		}
	}
	for _, says := range []string{"it expired on", "it is valid from"} {
		if got := strings.Count(r.log.String(), says); got > 1 {
			t.Errorf("the log says %q %d times, want once: %s", says, got, r.log.String())
		}
	}
	if !strings.Contains(r.log.String(), "was not renewed") {
		t.Errorf("the log does not say that the certificate was not renewed: %s", r.log.String())
	}

	if err := registrytest.CertificateFor(r.dir, "second", begin.Add(-time.Minute), begin.Add(2*time.Minute)); err != nil {
		t.Fatal(err)
	}
	second := r.file(t, "ca.pem")
	r.want(t, second, "second")
	if got, want := r.sample(t, "mlpromote_tls_certificate_refused"), "0"; got != want {
		t.Errorf("after a good certificate, mlpromote_tls_certificate_refused: got %q, want %s", got, want)
	}

	// One that waits is taken without the files changing again.
	if err := registrytest.CertificateFor(r.dir, "third", begin.Add(time.Minute), begin.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	r.want(t, second, "second")
	r.at(begin.Add(time.Minute + time.Second))
	third := r.file(t, "ca.pem")
	r.wantAt(t, third, "third", *r.now.Load())
	if got := r.sample(t, "mlpromote_tls_certificate_expiry_timestamp_seconds"); got == "" || got == "0" {
		t.Errorf("mlpromote_tls_certificate_expiry_timestamp_seconds: got %q, want when the third expires", got)
	}

	// When the one in use is over there is nothing left to keep.
	if err := registrytest.CertificateFor(r.dir, "fourth", begin.Add(2*time.Hour), begin.Add(3*time.Hour)); err != nil {
		t.Fatal(err)
	}
	r.at(begin.Add(90 * time.Minute))
	r.wantAt(t, r.file(t, "ca.pem"), "fourth", begin.Add(150*time.Minute))
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
	if err := registrytest.Certificate(dir, "x"); err != nil {
		t.Fatal(err)
	}
	crt, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for name, files := range map[string][2]string{"no file": {crt, key + "x"},
		"swapped": {key, crt}, "of another": {filepath.Join(dir, "ca.pem"), key}} {
		_, err := LoadCertificate(files[0], files[1], time.Now, slog.New(slog.DiscardHandler), nil)
		if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), files[0]) {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
}
