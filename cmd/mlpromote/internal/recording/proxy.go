package recording

import (
	"context"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/pipeline/capture"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/host"
	"mlpromote.dev/mlpromote/validators"
)

// defaultCount is how many cases are recorded from a service.
const defaultCount = 1000

// Bounds of connections. A request may take as long as the service lets it.
const (
	headerTime  = 30 * time.Second
	idleTime    = 2 * time.Minute
	headerBytes = 1 << 20
	graceTime   = 10 * time.Second // for requests that are at work when the recording ends
)

// capture records the requests of a service until ctx ends or the time is over.
func (f *Flags) capture(ctx context.Context, u *ui.UI, iface *validators.Interface, maxBytes int64) error {
	upstream, err := serviceURL(f.proxy)
	if err != nil {
		return err
	}
	if err := unknownInput(iface, f.inputs); err != nil {
		return err
	}
	listener, err := host.Listen(ctx, f.listen)
	if err != nil {
		return registry.WithHint(err, "--listen names another address")
	}
	defer func() { _ = listener.Close() }() // the server has closed it, if there was one
	if same(upstream, listener.Addr()) {
		return registry.Errorf(registry.CodeInvalid, "--proxy %s is the address of --listen: want the service's", f.proxy)
	}
	count := f.Count
	if count == 0 {
		count = defaultCount
	}
	recorder, err := capture.New(capture.Options{
		Upstream: upstream, Model: f.model, To: f.To, Add: f.Add, Count: count, MaxBytes: maxBytes, Seed: f.Seed, Share: f.share,
		Inputs: f.inputs, Outputs: f.outputs, Interface: iface, Note: u.Note,
	})
	if err != nil {
		return err
	}
	if !isLoopback(listener.Addr()) {
		u.Warn("others can reach " + listener.Addr().String() + ": they use the service through it, and their requests are recorded")
	}
	u.Note("send requests to http://%s; what %s answers is recorded until this is interrupted (Ctrl-C)", listener.Addr(), upstream.Redacted())
	served := serve(ctx, recorder, listener, f.duration)
	recorded, err := recorder.Close()
	if err != nil {
		return err
	}
	if served != nil {
		u.Warn(served.Error())
	}
	return f.told(u, recorded)
}

// serve forwards requests until ctx ends or the time is over.
func serve(ctx context.Context, recorder *capture.Recorder, listener net.Listener, limit time.Duration) error {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	timeouts := host.Timeouts{Header: headerTime, Idle: idleTime, MaxHeaderBytes: headerBytes}
	srv := timeouts.Server(recorder, slog.New(slog.DiscardHandler))
	return host.Shutdown{Begin: func() {}, Grace: graceTime}.Serve(ctx, srv, listener)
}

// told says what was recorded.
func (f *Flags) told(u *ui.UI, recorded Captured) error {
	for _, s := range recorded.Skipped {
		u.Note("not recorded: %d %s", s.Count, s.Reason)
	}
	if recorded.Cases == 0 {
		u.Partial(recorded)
		return recorded.None()
	}
	u.Note("wrote %s of %d in %s to %s; in the spec: cases: {path: %s/}",
		registry.Count(recorded.Cases, "case"), recorded.Read, registry.Count(recorded.Requests, "request"), f.To, filepath.Base(f.To))
	return u.Result(f.To, recorded)
}

// serviceURL reads the address of a service.
func serviceURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, registry.Errorf(registry.CodeInvalid, "--proxy %q: want the URL of the service, such as http://127.0.0.1:8000", text)
	case u.User != nil:
		return nil, registry.Errorf(registry.CodeInvalid, "--proxy has a user name in it: clients send their own credentials, which pass")
	case strings.Contains(u.Path, "/v2/models"):
		return nil, registry.Errorf(registry.CodeInvalid, "--proxy %q: want what stands before /v2/models", text)
	}
	return u, nil
}

// same reports whether a service is the proxy itself.
func same(upstream *url.URL, own net.Addr) bool {
	_, port, err := net.SplitHostPort(own.String())
	if err != nil || upstream.Port() != port {
		return false
	}
	name := upstream.Hostname()
	if hostname, err := os.Hostname(); err == nil && name == hostname {
		return true
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
