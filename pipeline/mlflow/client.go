package mlflow

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Limits of a server's answers.
const (
	maxAnswer     = 4 << 20 // bytes of a JSON document
	maxMessage    = 300     // bytes of an error that are shown
	answerTimeout = time.Minute
	stallTimeout  = time.Minute // without a byte of a download
	maxRedirects  = 5
	maxFiles      = 1000 // of a model, and entries of a list
)

// Paths of the REST API, and of the artifacts that the server hands out.
const (
	api               = "api/2.0/mlflow/"
	artifactsEndpoint = "api/2.0/mlflow-artifacts/artifacts"
)

// Config is the place of a server and who asks it. The zero Config names no server.
type Config struct {
	URL                string // tracking URI: http://HOST:PORT or https://HOST/PREFIX
	Token              string
	Username, Password string // both or neither; they take precedence over Token
	CAFile             string // certificates that sign the server's certificate; empty: the CAs of the system
}

// ConfigFromEnvironment reads the variables of MLflow's own clients.
func ConfigFromEnvironment() Config {
	return Config{
		URL: os.Getenv("MLFLOW_TRACKING_URI"), Token: os.Getenv("MLFLOW_TRACKING_TOKEN"), Username: os.Getenv("MLFLOW_TRACKING_USERNAME"),
		Password: os.Getenv("MLFLOW_TRACKING_PASSWORD"), CAFile: os.Getenv("MLFLOW_TRACKING_SERVER_CERT_PATH"),
	}
}

// Client reads from one server.
type Client struct {
	config Config
	base   *url.URL
	http   *http.Client
}

// NewClient checks a configuration. Errors: CodeInvalid.
func NewClient(c Config) (*Client, error) {
	if c.URL == "" {
		return nil, registry.WithHint(registry.Errorf(registry.CodeInvalid, "MLFLOW_TRACKING_URI is not set, so no MLflow server is known"),
			"MLFLOW_TRACKING_URI=https://HOST, and MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, if it asks for them")
	}
	base, err := c.base()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: answerTimeout,
		DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, MaxResponseHeaderBytes: 64 << 10,
		DisableCompression: true, // a small answer must not become a large one
	}
	if err := c.trustCA(transport); err != nil {
		return nil, err
	}
	client := &Client{config: c, base: base, http: &http.Client{Transport: transport}}
	client.http.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Host != base.Host || r.URL.Scheme != base.Scheme || len(via) > maxRedirects {
			return registry.Errorf(registry.CodeInvalid, "%s redirects to %s, and only redirects to the same server are followed", base.Host, r.URL.Host)
		}
		return nil
	}
	return client, nil
}

// base checks the address, and whether credentials may go there.
func (c Config) base() (*url.URL, error) {
	base, err := url.Parse(strings.TrimRight(c.URL, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, registry.WithHint(registry.Errorf(registry.CodeInvalid, "MLFLOW_TRACKING_URI %q: want http://HOST:PORT or https://HOST", registry.RedactURL(c.URL)),
			"models are read over the REST API; for a folder or a database, start mlflow server on it; a user and a password go into variables of their own")
	}
	if (c.Username == "") != (c.Password == "") {
		return nil, registry.Errorf(registry.CodeInvalid, "want both MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or neither")
	}
	if secret := c.Token != "" || c.Username != ""; secret && base.Scheme == "http" && !loopback(base.Hostname()) {
		return nil, registry.WithHint(registry.Errorf(registry.CodeInvalid, "MLFLOW_TRACKING_URI is http, so the credentials for %s would cross the network unencrypted", base.Host),
			"use https, or a proxy or tunnel that listens on 127.0.0.1")
	}
	return base, nil
}

// trustCA makes a transport accept servers with certificates of a private CA.
func (c Config) trustCA(transport *http.Transport) error {
	if c.CAFile == "" {
		return nil
	}
	data, err := os.ReadFile(c.CAFile)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(data) {
		return registry.Errorf(registry.CodeInvalid, "MLFLOW_TRACKING_SERVER_CERT_PATH %s: want a readable file with certificates (error %v)", c.CAFile, err)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return nil
}

func loopback(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || address != nil && address.IsLoopback()
}

// Server is the address of the server, without credentials.
func (c *Client) Server() string { return c.base.String() }

// Close closes connections that are kept.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request sends a GET, and returns the response of a success. The caller closes its body.
func (c *Client) request(ctx context.Context, endpoint string, query url.Values) (*http.Response, error) {
	to := *c.base
	to.Path = path.Join("/", c.base.Path, endpoint)
	to.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), http.NoBody)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "MLflow: %w", err)
	}
	switch {
	case c.config.Username != "":
		r.SetBasicAuth(c.config.Username, c.config.Password)
	case c.config.Token != "":
		r.Header.Set("Authorization", "Bearer "+c.config.Token)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	return nil, c.refused(response)
}

// unreachable describes an error of the network.
func (c *Client) unreachable(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the URL repeats itself in it
	}
	var known *registry.Error
	if errors.As(err, &known) {
		return known
	}
	wrap := registry.Errorf
	if registry.LastingTLS(err) {
		wrap = registry.Lastingf
	}
	return registry.WithHint(wrap(registry.CodeUnavailable, "MLflow server %s: %w", c.base.Host, err), "is MLFLOW_TRACKING_URI right, and does the server run?")
}

// refused describes an answer that is no success.
func (c *Client) refused(response *http.Response) error {
	said := struct {
		Code    string `json:"error_code"`
		Message string `json:"message"`
	}{}
	data, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // the status decides
	_ = json.Unmarshal(data, &said)                                 // a proxy may answer in HTML
	text := response.Status
	if said.Message != "" {
		text = registry.PlainText(said.Message[:min(len(said.Message), maxMessage)])
	}
	switch response.StatusCode {
	case http.StatusUnauthorized:
		return registry.WithHint(registry.Errorf(registry.CodeUnauthenticated, "MLflow server %s: %s", c.base.Host, text),
			"set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD")
	case http.StatusForbidden:
		return registry.Errorf(registry.CodeForbidden, "MLflow server %s: %s", c.base.Host, text)
	case http.StatusNotFound, http.StatusBadRequest:
		return registry.Errorf(registry.CodeNotFound, "MLflow server %s: %s", c.base.Host, text) // an alias that is missing is 400 there
	}
	return registry.Errorf(registry.CodeUnavailable, "MLflow server %s: %s", c.base.Host, text)
}

// get reads a JSON document of the REST API.
func (c *Client) get(ctx context.Context, endpoint string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	response, err := c.request(ctx, endpoint, query)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return c.unreachable(err)
	}
	if len(data) > maxAnswer {
		return registry.Errorf(registry.CodeInvalid, "MLflow server %s: the answer of %s has more than %d bytes", c.base.Host, endpoint, maxAnswer)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return registry.WithHint(registry.Errorf(registry.CodeInvalid, "MLflow server %s: the answer of %s is not the JSON of MLflow", c.base.Host, endpoint),
			"is MLFLOW_TRACKING_URI the address of an MLflow server, with its prefix if it has one?")
	}
	return nil
}

// download writes an artifact, and refuses one of more than limit bytes. It ends if no byte comes for a minute.
func (c *Client) download(ctx context.Context, at string, to io.Writer, limit int64) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(stallTimeout, func() {
		cancel(registry.Errorf(registry.CodeUnavailable, "MLflow server %s: no byte of %s came for %s", c.base.Host, at, stallTimeout))
	})
	defer stalled.Stop()
	response, err := c.request(ctx, artifactsEndpoint+"/"+at, nil)
	if err != nil {
		return 0, cause(ctx, err)
	}
	defer response.Body.Close()
	if response.ContentLength > limit {
		return 0, tooLarge(at, limit)
	}
	n, err := io.Copy(to, &watched{io.LimitReader(response.Body, limit+1), stalled})
	switch {
	case err != nil:
		return n, cause(ctx, c.unreachable(err))
	case n > limit:
		return n, tooLarge(at, limit)
	case response.ContentLength >= 0 && n != response.ContentLength:
		return n, registry.Errorf(registry.CodeUnavailable, "MLflow server %s: %s ended after %d of %d bytes", c.base.Host, at, n, response.ContentLength)
	}
	return n, nil
}

func tooLarge(at string, limit int64) error {
	return registry.WithHint(registry.Errorf(registry.CodeInvalid, "artifact %s has more than %d bytes", at, limit),
		"download the model with mlflow artifacts download, and hand in its file")
}

// cause prefers the reason why a context ended to the error that followed from it.
func cause(ctx context.Context, err error) error {
	var known *registry.Error
	if because := context.Cause(ctx); errors.As(because, &known) {
		return known
	}
	return err
}

// watched puts off the end of a download with each read.
type watched struct {
	io.Reader
	stalled *time.Timer
}

// Read reads.
func (w *watched) Read(p []byte) (int, error) {
	w.stalled.Reset(stallTimeout)
	return w.Reader.Read(p)
}
