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
	"mlpromote.dev/mlpromote/signer/jobtoken"
)

// audienceVariable has the audience of the token that a job of GitHub Actions asks for, to get in at a service without a secret.
const audienceVariable = "MLPROMOTE_TOKEN_AUDIENCE"

// signingAudience is that of the tokens for which public authorities certify keys.
const signingAudience = "sigstore"

// transport is how the verbs speak to a service: with the token of MLPROMOTE_TOKEN, or one of the CI job for the audience of
// MLPROMOTE_TOKEN_AUDIENCE, else with the credential that the docker config has for the host. It trusts the CA of
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
	t := &Authorized{Base: base, Service: service, Authorization: authorization, agent: c.Agent}
	if audience := s.Getenv(audienceVariable); audience != "" {
		t.Tokens = &jobtoken.Source{Audience: audience, Getenv: s.Getenv}
		if _, err := t.Tokens.Token(ctx); err != nil { // before any work, and not as a failure of the service
			return nil, err
		}
	}
	return t, nil
}

// authorization is the header that goes with every request to the service; empty: none, or one that is asked for.
func (s Service) authorization(ctx context.Context, service *url.URL, c *remote.Repositories) (string, error) {
	var header string
	token, asks := strings.TrimSpace(s.Getenv("MLPROMOTE_TOKEN")), s.Getenv(audienceVariable) != ""
	switch {
	case s.Getenv(audienceVariable) == signingAudience:
		return "", registry.WithHint(registry.Errorf(registry.CodeInvalid,
			"%s is %s: who gets a token for that can have certificates made, and sign as this job", audienceVariable, signingAudience),
			"want an audience of the service's own, such as its URL, there and in its access.yaml")
	case asks && token != "":
		return "", registry.Errorf(registry.CodeInvalid, "MLPROMOTE_TOKEN and %s are both set: want one of the two", audienceVariable)
	case asks: // with each request, since such a token expires in minutes
	case token == "":
		header = s.dockerAuthorization(ctx, service, c)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", registry.Errorf(registry.CodeInvalid, "MLPROMOTE_TOKEN: want the text of one token, and nothing else")
	default:
		header = "Bearer " + token
	}
	if (header != "" || asks) && service.Scheme == "http" && !remote.IsLoopback(service.Host) {
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
	Tokens        *jobtoken.Source // gives the token in place of Authorization; nil: none
	agent         string
}

// RoundTrip sends a request.
func (t *Authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", t.agent)
	if r.URL.Scheme == t.Service.Scheme && r.URL.Host == t.Service.Host {
		authorization := t.Authorization
		if t.Tokens != nil {
			token, err := t.Tokens.Token(r.Context())
			if err != nil {
				if r.Body != nil { // else who writes to it waits for ever
					_ = r.Body.Close()
				}
				return nil, err
			}
			authorization = "Bearer " + token
		}
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
	}
	return t.Base.RoundTrip(r)
}
