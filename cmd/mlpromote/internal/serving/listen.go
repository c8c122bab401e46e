package serving

import (
	"net"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/client"
	"mlpromote.dev/mlpromote/registry/oci/remote"
)

// ListenConfig is where a service listens, and by what names clients reach it.
type ListenConfig struct {
	Listen       string
	URL          string // as clients know it; empty: that of the listener
	hosts        string // other names, separated by commas
	Auth         bool   // also on loopback
	InsecureHTTP bool
	TLSCert      string
	TLSKey       string
}

// check refuses settings with which tokens would be seen on their way. Errors: CodeInvalid.
func (e *ListenConfig) check() error {
	for _, name := range e.hostNames() {
		if !access.ValidHost(name) {
			return registry.Errorf(registry.CodeInvalid,
				"--hosts: %q: want names or addresses without ports, separated by commas: registry.internal,10.0.0.7", name)
		}
	}
	_, port, err := net.SplitHostPort(e.Listen)
	if n, notNumber := strconv.Atoi(port); err != nil || notNumber == nil && (n < 0 || n > 65535) {
		return registry.Errorf(registry.CodeInvalid, "--listen %q: want HOST:PORT, for example 127.0.0.1:5080", e.Listen)
	}
	if (e.TLSCert == "") != (e.TLSKey == "") {
		return registry.Errorf(registry.CodeInvalid, "--tls-cert and --tls-key: want both, or none")
	}
	e.InsecureHTTP = e.InsecureHTTP && e.TLSCert == "" // an image may set it for whoever brings no certificate
	if e.URL != "" {
		e.URL = strings.TrimSuffix(e.URL, "/")
		if _, err := client.ParseURL(e.URL); err != nil {
			return registry.Errorf(registry.CodeInvalid, "--url: %w", err)
		}
	}
	switch {
	case remote.IsLoopback(e.Listen) || e.TLSCert != "":
		return nil
	case !e.InsecureHTTP:
		return registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "--listen %s: others reach this address, and would see tokens on their way", e.Listen),
			"--tls-cert FILE --tls-key FILE; behind a proxy that speaks TLS --insecure-http --url https://HOST; for this machine alone 127.0.0.1")
	case e.URL == "":
		return registry.Errorf(registry.CodeInvalid, "--insecure-http: --url is missing: clients are told to send their tokens there")
	}
	return nil
}

// address is the URL of the service once it listens.
func (e *ListenConfig) address(listener net.Listener) string {
	switch {
	case e.URL != "":
		return e.URL
	case e.TLSCert != "":
		return "https://" + listener.Addr().String()
	default:
		return "http://" + listener.Addr().String()
	}
}

// hostNames are those of --hosts.
func (e *ListenConfig) hostNames() []string {
	return strings.FieldsFunc(e.hosts, func(r rune) bool { return r == ',' || r == ' ' })
}
