package main

import (
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// certificate serves the certificate and key in two files, which are renewed now and then. It
// looks at the files for every connection, which costs far less than the handshake. A
// certificate that is expired or not yet valid never replaces one that is valid: it waits
// until it is valid, or the one in use is not.
type certificate struct {
	certFile, keyFile string
	logger            *slog.Logger
	now               registry.Clock
	report            func(expires time.Time, refused bool) // of the certificate in use, and whether the files have another that is refused

	mu     sync.Mutex
	seen   [2]fs.FileInfo   // of the files as they were read last, usable or not
	broken error            // why those could not be read
	pair   *tls.Certificate // in use
	next   *tls.Certificate // in the files and not in use; nil: none is
	told   string           // what is wrong, as it was logged last
}

// newCertificate reads the files. report may be nil. Errors: CodeInvalid.
func newCertificate(certFile, keyFile string, now registry.Clock, logger *slog.Logger, report func(time.Time, bool)) (*certificate, error) {
	if report == nil {
		report = func(time.Time, bool) {}
	}
	c := &certificate{certFile: certFile, keyFile: keyFile, now: now, logger: logger, report: report}
	if err := c.reload(); err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "--tls-cert %s --tls-key %s: %w", certFile, keyFile, err)
	}
	if err := inTime(c.pair.Leaf, now()); err != nil {
		logger.Error("clients will refuse the certificate", "certificate", certFile, "error", err)
	}
	return c, nil
}

// config is what a server needs for TLS.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}
}

// covers reports whether the certificate has a name.
func (c *certificate) covers(name string) bool { return c.current().Leaf.VerifyHostname(name) == nil }

// current is the certificate to use now. While the files cannot be used, because one of the
// two is not written yet or the certificate is not valid, it stays the one before.
func (c *certificate) current() *tls.Certificate {
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
			c.logger.Error("the certificate was not renewed: the one before stays in use", "certificate", c.certFile, "key", c.keyFile, "error", wrong)
		}
	}
	return c.pair
}

// reload reads the files if they changed, and takes what is in them when that is right. The
// caller holds mu.
func (c *certificate) reload() error {
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

func (c *certificate) stat() (found [2]fs.FileInfo, err error) {
	for i, name := range []string{c.certFile, c.keyFile} {
		if found[i], err = os.Stat(name); err != nil {
			return found, err
		}
	}
	return found, nil
}

// adopt begins to use the certificate that waits, unless that is not valid and the one in use
// is. It reports whether none waits any more.
func (c *certificate) adopt() bool {
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

// inTime says why a certificate is not valid at a time.
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
