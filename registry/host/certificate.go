package host

import (
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Certificate serves the certificate and key in two files, and follows their renewal: it checks
// the files at every connection, which costs far less than the handshake. A certificate that
// has expired or is not yet valid never replaces a valid one. It is used once it is valid, or
// once the current one is not. Certificate is safe for concurrent use.
type Certificate struct {
	certFile, keyFile string
	logger            *slog.Logger
	now               storage.Clock
	report            func(expires time.Time, refused bool)

	mu     sync.Mutex
	seen   [2]fs.FileInfo   // of the files when they were last read
	broken error            // why they could not be read
	pair   *tls.Certificate // in use
	next   *tls.Certificate // in the files and not in use; may be nil
	told   string           // the problem that was last logged
}

// LoadCertificate reads the files, in PEM. report is called with the expiry of the certificate in use, and
// whether the files hold another one that is not used; it may be nil. Errors: CodeInvalid.
func LoadCertificate(certFile, keyFile string, now storage.Clock, logger *slog.Logger, report func(time.Time, bool)) (*Certificate, error) {
	if report == nil {
		report = func(time.Time, bool) {}
	}
	c := &Certificate{certFile: certFile, keyFile: keyFile, now: now, logger: logger, report: report}
	if err := c.reload(); err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "certificate %s, key %s: %w", certFile, keyFile, err)
	}
	if err := inTime(c.pair.Leaf, now()); err != nil {
		logger.Error("clients will refuse the certificate", "certificate", certFile, "error", err)
	}
	return c, nil
}

// TLSConfig returns the settings of a server that shows the certificate. It requires TLS 1.2 or later.
func (c *Certificate) TLSConfig() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}
}

// Covers reports whether the certificate is valid for a host name or address.
func (c *Certificate) Covers(name string) bool { return c.current().Leaf.VerifyHostname(name) == nil }

// current returns the certificate to use now. While the files cannot be used, because one of
// them is not written yet or the certificate is not valid, that is the previous one.
func (c *Certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	wrong := ""
	if err := c.reload(); err != nil {
		wrong = err.Error()
	}
	if wrong != c.told {
		c.told = wrong
		c.report(c.pair.Leaf.NotAfter, wrong != "")
		if wrong != "" {
			c.logger.Error("the certificate was not renewed: the previous one stays in use", "certificate", c.certFile, "key", c.keyFile, "error", wrong)
		}
	}
	return c.pair
}

// reload reads the files if they changed, and adopts the certificate in them if it can be used. The caller
// holds mu.
func (c *Certificate) reload() error {
	found, err := c.stat()
	if err != nil {
		return err
	}
	if !unchanged(c.seen[0], found[0]) || !unchanged(c.seen[1], found[1]) {
		c.seen, c.next = found, nil
		pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
		if c.broken = err; err == nil {
			c.next = &pair
		}
	}
	if c.broken != nil || c.adopt() {
		return c.broken
	}
	return inTime(c.next.Leaf, c.now())
}

func (c *Certificate) stat() (found [2]fs.FileInfo, err error) {
	for i, name := range []string{c.certFile, c.keyFile} {
		if found[i], err = os.Stat(name); err != nil {
			return found, err
		}
	}
	return found, nil
}

// adopt switches to the next certificate, unless that one is not valid and the one in use is. It reports
// whether there is no next certificate left.
func (c *Certificate) adopt() bool {
	switch {
	case c.next == nil:
		return true
	case c.pair == nil:
	case inTime(c.next.Leaf, c.now()) == nil || inTime(c.pair.Leaf, c.now()) != nil:
		c.logger.Info("the certificate was renewed", "certificate", c.certFile, "until", c.next.Leaf.NotAfter)
	default:
		return false
	}
	c.pair, c.next = c.next, nil
	c.report(c.pair.Leaf.NotAfter, false)
	return true
}

// inTime returns an error if a certificate is not valid at a time.
func inTime(leaf *x509.Certificate, at time.Time) error {
	switch {
	case at.Before(leaf.NotBefore):
		return registry.Errorf(registry.CodeInvalid, "it is valid from %s", leaf.NotBefore.UTC().Format(time.DateTime))
	case at.After(leaf.NotAfter):
		return registry.Errorf(registry.CodeInvalid, "it expired on %s", leaf.NotAfter.UTC().Format(time.DateTime))
	}
	return nil
}

func unchanged(before, now fs.FileInfo) bool {
	return before != nil && os.SameFile(before, now) && before.ModTime().Equal(now.ModTime()) && before.Size() == now.Size()
}
