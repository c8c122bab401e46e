package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/oci/remote"
)

// transport is how the verbs speak to a service: with the token of MLPROMOTE_TOKEN,
// else with the credential that the docker config has for the host, trusting the CA of
// --tls-ca besides those of the system.
func (s Service) transport(ctx context.Context, service *url.URL, c *remote.Repositories) (http.RoundTripper, error) {
	authorization, err := s.authorization(ctx, service, c)
	if err != nil {
		return nil, err
	}
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, registry.Errorf(registry.CodeInternal, "the default transport is a %T", http.DefaultTransport)
	}
	base = base.Clone()
	if base.TLSClientConfig, err = s.tlsConfig(); err != nil {
		return nil, err
	}
	return &Authorized{Base: base, Service: service, Authorization: authorization, agent: c.Agent}, nil
}

// authorization is the header that goes with every request to the service; empty: none.
func (s Service) authorization(ctx context.Context, service *url.URL, c *remote.Repositories) (string, error) {
	var header string
	if token := strings.TrimSpace(s.Getenv("MLPROMOTE_TOKEN")); token == "" {
		header = s.dockerAuthorization(ctx, service, c)
	} else if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", registry.Errorf(registry.CodeInvalid, "MLPROMOTE_TOKEN: want the text of one token, and nothing else")
	} else {
		header = "Bearer " + token
	}
	if header != "" && service.Scheme == "http" && !remote.IsLoopback(service.Host) {
		s.Note("WARNING: the token goes to %s as it is: everybody on the way can take it; use https", service)
	}
	return header, nil
}

// dockerAuthorization is made of the credential that docker login left. A config that
// cannot be read stops only who needs one, and the service says who does.
func (s Service) dockerAuthorization(ctx context.Context, service *url.URL, c *remote.Repositories) string {
	found, err := c.Credential(ctx, service.Host)
	switch {
	case err != nil:
		s.Note("%v", err)
	case found.RegistryToken != "":
		return "Bearer " + found.RegistryToken
	case found.Password != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(found.Username+":"+found.Password))
	}
	return ""
}

// tlsConfig trusts the CAs of the system, and the one of --tls-ca. Errors: CodeInvalid.
func (s Service) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.TLSCA == "" {
		return config, nil
	}
	data, err := os.ReadFile(s.TLSCA)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "--tls-ca: %w", err)
	}
	if config.RootCAs, err = x509.SystemCertPool(); err != nil {
		config.RootCAs = x509.NewCertPool()
	}
	if !config.RootCAs.AppendCertsFromPEM(data) {
		return nil, registry.Errorf(registry.CodeInvalid, "--tls-ca %s: want certificates in PEM", s.TLSCA)
	}
	return config, nil
}

// Authorized sends a credential to one service alone, and not to hosts that the service redirects
// to.
type Authorized struct {
	Base          http.RoundTripper
	Service       *url.URL
	Authorization string
	agent         string
}

// RoundTrip sends a request.
func (t *Authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", t.agent)
	if t.Authorization != "" && r.URL.Scheme == t.Service.Scheme && r.URL.Host == t.Service.Host {
		r.Header.Set("Authorization", t.Authorization)
	}
	return t.Base.RoundTrip(r)
}
