package main

import (
	"crypto/tls"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"mlpromote.dev/mlpromote/registry"
)

// certificate is a certificate and its key in files that somebody renews now and then. It
// looks at them for every connection, which costs less than the handshake by far.
type certificate struct {
	certFile, keyFile string
	logger            *slog.Logger

	mu   sync.Mutex
	seen [2]fs.FileInfo // of the files that were read last, whether they could be used or not
	pair *tls.Certificate
}

// newCertificate reads the files. Errors: CodeInvalid.
func newCertificate(certFile, keyFile string, logger *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, logger: logger}
	if err := c.reload(); err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "--tls-cert %s --tls-key %s: %w", certFile, keyFile, err)
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

// current is the certificate as the files have it now. As long as they cannot be used,
// because one of the two is not written yet, it stays the one before.
func (c *certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.reload(); err != nil {
		c.logger.Error("the certificate was not renewed", "certificate", c.certFile, "key", c.keyFile, "error", err)
	}
	return c.pair
}

// reload reads the files if they are others than before.
func (c *certificate) reload() error {
	var found [2]fs.FileInfo
	for i, name := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		found[i] = info
	}
	if unchanged(c.seen[0], found[0]) && unchanged(c.seen[1], found[1]) {
		return nil
	}
	c.seen = found
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	if c.pair != nil {
		c.logger.Info("the certificate was renewed", "certificate", c.certFile, "until", pair.Leaf.NotAfter)
	}
	c.pair = &pair
	return nil
}

func unchanged(before, now fs.FileInfo) bool {
	return before != nil && os.SameFile(before, now) && before.ModTime().Equal(now.ModTime()) && before.Size() == now.Size()
}
