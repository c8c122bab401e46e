package capture

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"time"

	"context"
)

// inferPath matches the path of a request for an inference, whatever it begins with.
var inferPath = regexp.MustCompile(`^(.*/v2/models/([^/]+)(?:/versions/[^/]+)?)/infer$`)

// exchangeKey is that of the exchange in the context of a request.
type exchangeKey struct{}

// newProxy returns what forwards requests to the service. It changes nothing that the service or the client
// can see, but for the headers that belong to one connection.
func (r *Recorder) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: r.rewrite,
		Transport: &http.Transport{
			Proxy:       http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			// Answers pass as they are: nothing is asked for or unpacked on the way.
			DisableCompression: true, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 256, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second,
		},
		FlushInterval:  -1, // at once
		ModifyResponse: copyAnswer,
		ErrorHandler:   r.unanswered,
		ErrorLog:       slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // clients that leave
	}
}

// forwardedHeaders are removed by the proxy of the standard library, and belong to the user.
var forwardedHeaders = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

func (r *Recorder) rewrite(p *httputil.ProxyRequest) {
	p.SetURL(r.options.Upstream)
	p.Out.URL.RawQuery = p.In.URL.RawQuery
	if base := r.options.Upstream.RawQuery; base != "" {
		p.Out.URL.RawQuery = strings.TrimSuffix(base+"&"+p.In.URL.RawQuery, "&")
	}
	for _, name := range forwardedHeaders {
		if values, ok := p.In.Header[name]; ok {
			p.Out.Header[name] = values
		}
	}
	if !isLoopback(p.In.Host) {
		p.Out.Host = p.In.Host // a name that a gateway behind may route by
	}
}

// isLoopback reports whether a host is a name of this machine, which a client uses for the proxy alone.
func isLoopback(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// copyAnswer notes the status of an answer, and copies its body where outputs are recorded.
func copyAnswer(answer *http.Response) error {
	x, ok := answer.Request.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil
	}
	x.status = answer.StatusCode
	if x.answer != nil && x.status < 300 {
		x.answered = answer.Header.Clone()
		answer.Body = &tee{answer.Body, x.answer}
	}
	return nil
}

// unanswered tells a client that the service did not answer, in the protocol's form of errors.
func (r *Recorder) unanswered(w http.ResponseWriter, req *http.Request, err error) {
	if errors.Is(err, context.Canceled) || req.Context().Err() != nil { // the client left
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	r.warnOnce("upstream", "the service at %s does not answer: %s", r.options.Upstream.Redacted(), err.Error())
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadGateway)
	_, _ = io.WriteString(w, `{"error": "the service behind mlpromote cases record does not answer"}`+"\n")
}

// ServeHTTP forwards a request. If it is one for an inference, a copy is read afterwards.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	x := r.begin(req)
	if x == nil {
		r.proxy.ServeHTTP(w, req)
		return
	}
	handed := false
	defer func() { // also where the client left, which the proxy says by a panic
		if !handed {
			r.skip(skipBroken, "")
			x.release()
		}
	}()
	copied := req.WithContext(context.WithValue(req.Context(), exchangeKey{}, x))
	if req.Body != nil && req.Body != http.NoBody {
		copied.Body = &tee{req.Body, x.request}
	}
	r.proxy.ServeHTTP(w, copied)
	handed = true
	r.hand(x)
}

// begin returns the exchange of a request that is recorded, or nil.
func (r *Recorder) begin(req *http.Request) *exchange {
	match := inferPath.FindStringSubmatch(req.URL.EscapedPath())
	if req.Method != http.MethodPost || match == nil {
		return nil
	}
	model, err := url.PathUnescape(match[2])
	if err != nil || !r.wants(model) {
		return nil
	}
	x := &exchange{model: model, metadata: match[1], header: req.Header.Clone(), request: &bodyCopy{budget: &r.budget}, length: req.ContentLength}
	if r.options.Outputs {
		x.answer = &bodyCopy{budget: &r.budget}
	}
	return x
}
