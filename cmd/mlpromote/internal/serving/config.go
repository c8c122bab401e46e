package serving

import (
	"io"
	"net"
	"time"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/host"
	"mlpromote.dev/mlpromote/registry/oci/remote"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/telemetry"
)

// Config is what can be set of a service.
type Config struct {
	ListenConfig
	MetricsListen string

	LogLevel, LogFormat string

	collect time.Duration // between two collections; 0: none
	keep    gc.Retention

	scrubInterval time.Duration // from the end of a pass to the next; 0: none
	scrubRate     int           // bytes a second; 0: any number
	// checkpointEvents is after how many events a checkpoint of the history is made; 0: only on demand.
	checkpointEvents int
	trustLife        time.Duration // of trust bundles that this service publishes
	nodeReports      time.Duration // how long a report of a node counts; 0: none are taken

	reload time.Duration // between looks at the files of the configuration; 0: only at SIGHUP

	hooks hooks

	Logins     int // wrong credentials, per address and minute; 0: any; -1: PublicLogins where addresses are of clients
	Rate       int // requests to the REST API per caller and second; 0: any; -1: publicRate where others come
	maxUploads int // under way, per caller; 0: any

	diskReserve int // bytes that uploads leave free; 0: none; -1: see blob.Reserve

	maxReferrers int // of one subject, per caller, pushed over /v2/; 0: any

	headerTimeout  time.Duration // for the headers of a request
	bodyTimeout    time.Duration // of a pause in a body
	idleTimeout    time.Duration // of a connection between requests
	maxHeaderBytes int
	ShutdownDelay  time.Duration // between not being ready and taking no connections
	ShutdownGrace  time.Duration // for requests to finish after that
}

// Settings is everything that can be set, with its default. To add a setting is to add a
// field above and a line here: the flag --NAME, the variable MLPROMOTE_NAME and the key NAME
// of the file come with it, and docs/reference/serve.md, which a test compares.
func Settings(shared SharedFlags, c *Config) []Setting {
	keep := gc.DefaultRetention()
	return []Setting{
		{Name: "data", at: shared.Data, Shared: true, Fallback: connect.DefaultData, usage: "data directory"},
		{Name: "keys", at: shared.Keys, Shared: true, usage: "folder of signing keys; empty: DATA/keys"},
		{Name: "listen", at: &c.Listen, Fallback: "127.0.0.1:5080", usage: "address and port; port 0 takes a free one"},
		{Name: "database", at: shared.Database, Shared: true, secret: true,
			usage: "postgres:// URL of the data directory's catalog; empty: a file in the directory"},
		{Name: "storage", at: shared.Storage, Shared: true, secret: true, usage: "s3://BUCKET/PREFIX of the content; empty: files in the data directory"},
		{Name: "policy-dir", at: shared.PolicyDir, Shared: true,
			usage: "folder of environments.yaml and access.yaml, to which their paths are relative; empty: the data directory"},
		{Name: "url", at: &c.URL,
			usage: "URL at which clients reach the service, if it differs from the address to listen on: https://registry.example.com"},
		{Name: "hosts", at: &c.hosts,
			usage: "other host names and addresses of the service, separated by commas, for clients or a proxy; requests with another Host are refused"},
		{Name: "auth", at: &c.Auth, Fallback: "false", usage: "require authentication also on a loopback address, before a token exists"},
		{Name: "tls-cert", at: &c.TLSCert, usage: "PEM file of the certificate chain; read again when it changes"},
		{Name: "tls-key", at: &c.TLSKey, usage: "PEM file of the certificate's key; read again when it changes"},
		{Name: "insecure-http", at: &c.InsecureHTTP, Fallback: "false",
			usage: "plain HTTP on an address that other machines can reach: only behind a proxy with TLS (needs --url)"},
		{Name: "metrics-listen", at: &c.MetricsListen, usage: "separate address and port of /metrics; empty: on the same address as the API"},
		{Name: "log-level", at: &c.LogLevel, Fallback: "info", usage: "debug, info, warn or error; info has a line for each request"},
		{Name: "log-format", at: &c.LogFormat, Fallback: "text", usage: "text or json"},
		{Name: "reload-interval", at: &c.reload, Fallback: "5s",
			usage: "how often to check environments.yaml, its keys and access.yaml for changes; SIGHUP checks at once; 0s: only at SIGHUP"},
		{Name: "gc-interval", at: &c.collect, Fallback: "1h0m0s", usage: "interval of garbage collection; 0s: never"},
		{Name: "gc-grace", at: &c.keep.Grace, Fallback: keep.Grace.String(),
			usage: "minimum age of content to collect; must be longer than any push takes"},
		{Name: "gc-keep-heads", at: &c.keep.Heads, Fallback: "10", usage: "earlier heads of each model to keep in each protected environment"},
		{Name: "gc-keep-for", at: &c.keep.Period, Fallback: keep.Period.String(), usage: "keep releases that were a head within this time"},
		{Name: "scrub-interval", at: &c.scrubInterval, Fallback: "168h0m0s",
			usage: "pause between two passes of the scrubber, which reads all content to find damage; 0s: no scrubbing"},
		{Name: "scrub-rate", at: &c.scrubRate, Fallback: "8388608", usage: "bytes per second that the scrubber reads; 0: no limit"},
		{Name: "checkpoint-events", at: &c.checkpointEvents, Fallback: "100",
			usage: "sign a checkpoint of the history after so many events; 0: only on demand"},
		{Name: "trust-life", at: &c.trustLife, Fallback: wiring.TrustLife.String(),
			usage: "how long a trust bundle lives that this service signs, with a key of its own (publisher.key); the next one follows after half of it"},
		{Name: "node-reports", at: &c.nodeReports, Fallback: "0s",
			usage: "how long a node's report of its engine counts; 0s: no reports are taken"},
		{Name: "private-webhooks-unsafe", at: &c.hooks.privateUnsafe, Fallback: "false",
			usage: "allow webhooks to addresses of this machine and of private networks: a caller who registers one can then reach internal services"},
		{Name: "rate-limit", at: &c.Rate, Fallback: "-1",
			usage: "requests per second to the REST API and the pages for each caller, with bursts of ten times as many; 0: no limit; " +
				"-1: 200 on an address that other machines can reach, no limit on loopback"},
		{Name: "login-limit", at: &c.Logins, Fallback: "-1",
			usage: "wrong credentials per minute for each address, also in one burst, before it has to wait; 0: no limit; " +
				"-1: 60, but no limit on loopback and with --insecure-http, where all requests have the proxy's address"},
		{Name: "max-uploads", at: &c.maxUploads, Fallback: "1000", usage: "uploads in progress for each caller; 0: no limit"},
		{Name: "disk-reserve", at: &c.diskReserve, Fallback: "-1",
			usage: "bytes that uploads leave free on the disk of the content, for quarantines, rollbacks and the history; 0: none; " +
				"-1: 1 GiB or 5 % of the file system, whichever is less"},
		{Name: "max-referrers", at: &c.maxReferrers, Fallback: "256",
			usage: "signatures, reports and other referrers of one manifest that each caller may push over /v2/, and quarantines and failing reports that it may attach; 0: no limit"},
		{Name: "header-timeout", at: &c.headerTimeout, Fallback: "10s", usage: "time for the headers of a request"},
		{Name: "body-timeout", at: &c.bodyTimeout, Fallback: "1m0s", usage: "longest pause in the body of a request or response"},
		{Name: "idle-timeout", at: &c.idleTimeout, Fallback: "2m0s", usage: "how long a connection may wait for its next request"},
		{Name: "max-header-bytes", at: &c.maxHeaderBytes, Fallback: "65536", usage: "size of the headers of a request"},
		{Name: "shutdown-delay", at: &c.ShutdownDelay, Fallback: "0s", usage: "at shutdown: how long /readyz fails before new connections are refused"},
		{Name: "shutdown-grace", at: &c.ShutdownGrace, Fallback: "30s", usage: "at shutdown: time for requests to finish after that"},
	}
}

// PublicRate is how many requests a second a caller may send by default:
// more than a fleet that shares a token needs, fewer than a loop without a pause sends.
const PublicRate = 200

// Limit is how many requests callers may send to the REST API and the pages.
func (c *Config) Limit() server.Rate {
	perSecond := c.Rate
	if perSecond < 0 {
		perSecond = PublicRate
		if remote.IsLoopback(c.Listen) {
			perSecond = 0
		}
	}
	return server.Rate{PerSecond: float64(perSecond), Burst: 10 * perSecond}
}

// PublicLogins is how many wrong credentials a minute an address may send by
// default: more than people and broken jobs mean to send.
const PublicLogins = 60

// Failures is how many wrong credentials an address may send. Behind a proxy all clients
// have one address, which must not wait for the worst of them.
func (c *Config) Failures() authn.Rate {
	perMinute := c.Logins
	if perMinute < 0 {
		perMinute = PublicLogins
		if remote.IsLoopback(c.Listen) || c.InsecureHTTP {
			perMinute = 0
		}
	}
	return authn.Rate{PerSecond: float64(perMinute) / 60, Burst: perMinute}
}

// timeouts are those of connections.
func (c *Config) timeouts() host.Timeouts {
	return host.Timeouts{Header: c.headerTimeout, Idle: c.idleTimeout, MaxHeaderBytes: c.maxHeaderBytes}
}

// Check refuses settings that no service could have.
func (c *Config) Check() error {
	for name, d := range map[string]time.Duration{
		"header-timeout": c.headerTimeout, "body-timeout": c.bodyTimeout, "idle-timeout": c.idleTimeout,
	} {
		if d <= 0 {
			return registry.Errorf(registry.CodeInvalid, "%s %v: want a duration above 0", name, d)
		}
	}
	if _, err := telemetry.NewLogger(io.Discard, c.LogFormat, c.LogLevel); err != nil {
		return err
	}
	if _, _, err := net.SplitHostPort(c.MetricsListen); c.MetricsListen != "" && err != nil {
		return registry.Errorf(registry.CodeInvalid, "metrics-listen %q: want HOST:PORT, for example 127.0.0.1:9090", c.MetricsListen)
	}
	if err := c.keep.Validate(); err != nil {
		return err
	}
	if err := c.checkBounds(); err != nil {
		return err
	}
	if c.diskReserve < -1 {
		return registry.Errorf(registry.CodeInvalid, "disk-reserve %d: want a number of bytes, 0 for none, or -1 for the default", c.diskReserve)
	}
	if c.nodeReports != 0 && c.nodeReports < time.Minute {
		return registry.Errorf(registry.CodeInvalid, "node-reports %v: want at least 1m, or 0s for no reports", c.nodeReports)
	}
	if err := wiring.CheckTrustLife(c.trustLife); err != nil {
		return registry.Errorf(registry.CodeInvalid, "trust-life: %w", err)
	}
	return c.ListenConfig.check()
}

// checkBounds refuses numbers and times that are too small or too large.
func (c *Config) checkBounds() error {
	switch {
	case c.collect > 0 && c.keep.Grace < gc.MinGrace:
		return registry.Errorf(registry.CodeInvalid,
			"gc-grace: a grace of %v is too short: want at least %v, longer than any push takes", c.keep.Grace, gc.MinGrace)
	case c.collect != 0 && c.collect < time.Second:
		return registry.Errorf(registry.CodeInvalid, "gc-interval %v: want at least 1s, or 0s for never", c.collect)
	case c.scrubInterval != 0 && c.scrubInterval < time.Second || c.scrubRate < 0:
		return registry.Errorf(registry.CodeInvalid,
			"scrub-interval %v, scrub-rate %d: want at least 1s, or 0s for never, and 0 or more bytes a second", c.scrubInterval, c.scrubRate)
	case c.checkpointEvents < 0:
		return registry.Errorf(registry.CodeInvalid,
			"checkpoint-events %d: want a number of events, or 0 for checkpoints on demand only", c.checkpointEvents)
	case c.Rate < -1 || c.Logins < -1 || c.maxUploads < 0 || c.maxReferrers < 0:
		return registry.Errorf(registry.CodeInvalid,
			"rate-limit %d, login-limit %d, max-uploads %d, max-referrers %d: want 0 for any number, or how many",
			c.Rate, c.Logins, c.maxUploads, c.maxReferrers)
	case c.ShutdownDelay < 0 || c.ShutdownGrace < 0:
		return registry.Errorf(registry.CodeInvalid, "shutdown-delay %v, shutdown-grace %v: want none or more", c.ShutdownDelay, c.ShutdownGrace)
	case c.maxHeaderBytes < 1<<10 || c.maxHeaderBytes > 1<<20:
		return registry.Errorf(registry.CodeInvalid, "max-header-bytes %d: want 1024 to 1048576", c.maxHeaderBytes)
	}
	return nil
}

// SharedFlags are settings that are flags of all verbs.
type SharedFlags struct{ Data, Keys, Database, Storage, PolicyDir *string }

// hooks is how webhooks are told.
type hooks struct {
	privateUnsafe bool // also addresses of this machine and network
}
