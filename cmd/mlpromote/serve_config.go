package main

import (
	"io"
	"net"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access/gate"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/host"
	"mlpromote.dev/mlpromote/registry/oci/remote"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/telemetry"
)

// serveConfig is what can be set of a service.
type serveConfig struct {
	listenConfig
	metricsListen string

	logLevel, logFormat string

	collect time.Duration // between two collections; 0: none
	keep    gc.Retention

	scrubInterval time.Duration // from the end of a pass to the next; 0: none
	scrubRate     int           // bytes a second; 0: any number

	reload time.Duration // between looks at the files of the configuration; 0: only at SIGHUP

	hooks hooks

	logins     int // wrong credentials, per address and minute; 0: any; -1: publicLogins where addresses are of clients
	rate       int // requests to the REST API per caller and second; 0: any; -1: publicRate where others come
	maxUploads int // under way, per caller; 0: any

	maxReferrers int // of one subject, per caller, pushed over /v2/; 0: any

	headerTimeout  time.Duration // for the headers of a request
	bodyTimeout    time.Duration // of a pause in a body
	idleTimeout    time.Duration // of a connection between requests
	maxHeaderBytes int
	shutdownDelay  time.Duration // between not being ready and taking no connections
	shutdownGrace  time.Duration // for requests to finish after that
}

// settings is everything that can be set, with its default. To add a setting is to add a
// field above and a line here: the flag --NAME, the variable MLPROMOTE_NAME and the key NAME
// of the file come with it, and docs/reference/serve.md, which a test compares.
func (a *app) settings(c *serveConfig) []setting {
	keep := gc.DefaultRetention()
	return []setting{
		{name: "data", at: &a.data, shared: true, fallback: defaultData, usage: "data directory"},
		{name: "keys", at: &a.keys, shared: true, usage: "folder of signing keys; empty: DATA/keys"},
		{name: "listen", at: &c.listen, fallback: "127.0.0.1:5080", usage: "address and port; port 0 takes a free one"},
		{name: "database", at: &a.database, shared: true, secret: true, usage: "postgres:// URL of the data directory's catalog; empty: a file in the directory"},
		{name: "storage", at: &a.storage, shared: true, secret: true, usage: "s3://BUCKET/PREFIX of the content; empty: files in the data directory"},
		{name: "policy-dir", at: &a.policyDir, shared: true, usage: "folder of environments.yaml and access.yaml, from which paths in them start; empty: the data directory"},
		{name: "url", at: &c.url, usage: "where clients reach the service, if not at the address it listens on: https://registry.example.com"},
		{name: "hosts", at: &c.hosts, usage: "other names and addresses, separated by commas, that clients or a proxy in front reach the service by; requests with another Host are refused"},
		{name: "auth", at: &c.auth, fallback: "false", usage: "ask who it is on a loopback address too, before there is any token"},
		{name: "tls-cert", at: &c.tlsCert, usage: "PEM file of the certificate, with those up to its CA; read again when it changes"},
		{name: "tls-key", at: &c.tlsKey, usage: "PEM file of the certificate's key; read again when it changes"},
		{name: "insecure-http", at: &c.insecureHTTP, fallback: "false", usage: "plain HTTP where others reach it: only behind a proxy that speaks TLS (needs --url)"},
		{name: "metrics-listen", at: &c.metricsListen, usage: "address and port of /metrics alone; empty: beside the rest"},
		{name: "log-level", at: &c.logLevel, fallback: "info", usage: "debug, info, warn or error; info has a line for each request"},
		{name: "log-format", at: &c.logFormat, fallback: "text", usage: "text or json"},
		{name: "reload-interval", at: &c.reload, fallback: "5s", usage: "how often to look whether environments.yaml, the keys that it names or access.yaml changed; SIGHUP looks at once; 0s: only then"},
		{name: "gc-interval", at: &c.collect, fallback: "1h0m0s", usage: "how often to collect what nothing needs; 0s: never"},
		{name: "gc-grace", at: &c.keep.Grace, fallback: keep.Grace.String(), usage: "collect nothing younger; longer than any push takes"},
		{name: "gc-keep-heads", at: &c.keep.Heads, fallback: "10", usage: "earlier heads of each model to keep in each protected environment"},
		{name: "gc-keep-for", at: &c.keep.Period, fallback: keep.Period.String(), usage: "keep what was a head within this time"},
		{name: "scrub-interval", at: &c.scrubInterval, fallback: "168h0m0s", usage: "how long after reading all content again, to find damage, to begin anew; 0s: never read it"},
		{name: "scrub-rate", at: &c.scrubRate, fallback: "8388608", usage: "bytes a second that are read for that; 0: as fast as the storage gives them"},
		{name: "private-webhooks-unsafe", at: &c.hooks.privateUnsafe, fallback: "false", usage: "let webhooks have addresses of this machine and network: who registers one can then reach what only this machine should"},
		{name: "rate-limit", at: &c.rate, fallback: "-1", usage: "requests a second to the REST API that each caller may send, ten times as many at once; 0: any number; -1: 200 where others reach the service, any number on loopback"},
		{name: "login-limit", at: &c.logins, fallback: "-1", usage: "wrong credentials a minute that each address may send, also all at once, before it has to wait; 0: any number; -1: 60, but any number on loopback and with --insecure-http, where all come from the proxy's address"},
		{name: "max-uploads", at: &c.maxUploads, fallback: "1000", usage: "uploads that each caller may have under way; 0: any number"},
		{name: "max-referrers", at: &c.maxReferrers, fallback: "256", usage: "signatures, reports and other referrers of one manifest that each caller may push over /v2/; 0: any number"},
		{name: "header-timeout", at: &c.headerTimeout, fallback: "10s", usage: "time for the headers of a request"},
		{name: "body-timeout", at: &c.bodyTimeout, fallback: "1m0s", usage: "longest pause in the body of a request or answer"},
		{name: "idle-timeout", at: &c.idleTimeout, fallback: "2m0s", usage: "how long a connection may wait for its next request"},
		{name: "max-header-bytes", at: &c.maxHeaderBytes, fallback: "65536", usage: "size of the headers of a request"},
		{name: "shutdown-delay", at: &c.shutdownDelay, fallback: "0s", usage: "how long /readyz says no, when asked to stop, before connections are refused"},
		{name: "shutdown-grace", at: &c.shutdownGrace, fallback: "30s", usage: "time for requests to finish after that"},
	}
}

// publicRate is how many requests a second a caller may send by default:
// more than a fleet that shares a token needs, fewer than a loop without a pause sends.
const publicRate = 200

// limit is how many requests callers may send to the REST API.
func (c *serveConfig) limit() server.Rate {
	perSecond := c.rate
	if perSecond < 0 {
		perSecond = publicRate
		if remote.IsLoopback(c.listen) {
			perSecond = 0
		}
	}
	return server.Rate{PerSecond: float64(perSecond), Burst: 10 * perSecond}
}

// publicLogins is how many wrong credentials a minute an address may send by
// default: more than people and broken jobs mean to send.
const publicLogins = 60

// failures is how many wrong credentials an address may send. Behind a proxy all clients
// have one address, which must not wait for the worst of them.
func (c *serveConfig) failures() gate.Rate {
	perMinute := c.logins
	if perMinute < 0 {
		perMinute = publicLogins
		if remote.IsLoopback(c.listen) || c.insecureHTTP {
			perMinute = 0
		}
	}
	return gate.Rate{PerSecond: float64(perMinute) / 60, Burst: perMinute}
}

// timeouts are those of connections.
func (c *serveConfig) timeouts() host.Timeouts {
	return host.Timeouts{Header: c.headerTimeout, Idle: c.idleTimeout, MaxHeaderBytes: c.maxHeaderBytes}
}

// check refuses settings that no service could have.
func (c *serveConfig) check() error {
	for name, d := range map[string]time.Duration{
		"header-timeout": c.headerTimeout, "body-timeout": c.bodyTimeout, "idle-timeout": c.idleTimeout,
	} {
		if d <= 0 {
			return registry.Errorf(registry.CodeInvalid, "%s %v: want more than none", name, d)
		}
	}
	if _, err := telemetry.NewLogger(io.Discard, c.logFormat, c.logLevel); err != nil {
		return err
	}
	if _, _, err := net.SplitHostPort(c.metricsListen); c.metricsListen != "" && err != nil {
		return registry.Errorf(registry.CodeInvalid, "metrics-listen %q: want HOST:PORT, for example 127.0.0.1:9090", c.metricsListen)
	}
	if err := c.keep.Validate(); err != nil {
		return err
	}
	if err := c.checkBounds(); err != nil {
		return err
	}
	return c.listenConfig.check()
}

// checkBounds refuses numbers and times that are too small or too large.
func (c *serveConfig) checkBounds() error {
	switch {
	case c.collect > 0 && c.keep.Grace < gc.MinGrace:
		return registry.Errorf(registry.CodeInvalid, "gc-grace: a grace of %v is too short: want at least %v, longer than any push takes", c.keep.Grace, gc.MinGrace)
	case c.collect != 0 && c.collect < time.Second:
		return registry.Errorf(registry.CodeInvalid, "gc-interval %v: want at least 1s, or 0s for never", c.collect)
	case c.scrubInterval != 0 && c.scrubInterval < time.Second || c.scrubRate < 0:
		return registry.Errorf(registry.CodeInvalid, "scrub-interval %v, scrub-rate %d: want at least 1s, or 0s for never, and 0 or more bytes a second", c.scrubInterval, c.scrubRate)
	case c.rate < -1 || c.logins < -1 || c.maxUploads < 0 || c.maxReferrers < 0:
		return registry.Errorf(registry.CodeInvalid, "rate-limit %d, login-limit %d, max-uploads %d, max-referrers %d: want 0 for any number, or how many", c.rate, c.logins, c.maxUploads, c.maxReferrers)
	case c.shutdownDelay < 0 || c.shutdownGrace < 0:
		return registry.Errorf(registry.CodeInvalid, "shutdown-delay %v, shutdown-grace %v: want none or more", c.shutdownDelay, c.shutdownGrace)
	case c.maxHeaderBytes < 1<<10 || c.maxHeaderBytes > 1<<20:
		return registry.Errorf(registry.CodeInvalid, "max-header-bytes %d: want 1024 to 1048576", c.maxHeaderBytes)
	}
	return nil
}
