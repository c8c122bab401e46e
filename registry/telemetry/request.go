package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/requestid"
	"mlpromote.dev/mlpromote/registry/storage"
)

// note describes a request. Inner handlers fill in what they find out.
type note struct {
	principal string
}

type noteKey struct{}

// Requests assigns IDs to requests, and counts, measures, traces and logs each. It must be the
// outermost handler. Routes map paths to metric labels.
func (t *Telemetry) Requests(next http.Handler, routes Routes, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		n := new(note)
		route := routes.Of(r.URL.Path)
		ctx, span := t.span(requestid.Context(w, r), r, route)
		defer span.End()
		r = r.WithContext(context.WithValue(ctx, noteKey{}, n))
		body := &countedBody{ReadCloser: r.Body}
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = body
		}
		answer := &answer{ResponseWriter: w}
		moves := t.begin(r, route)
		brokeOff := true
		defer func() { // also after an aborted response
			moves(answer, body)
			if brokeOff {
				answer.status = 0
			}
			t.tell(r, n, route, answer, body, began, span, logger)
		}()
		next.ServeHTTP(answer, r)
		brokeOff = false
		if answer.status == 0 {
			answer.status = http.StatusOK
		}
	})
}

// span begins the span of a request. Without traces, and without the trace of a client for the log, there
// is nothing to begin.
func (t *Telemetry) span(ctx context.Context, r *http.Request, route string) (context.Context, trace.Span) {
	if !t.traces && r.Header["Traceparent"] == nil {
		return ctx, trace.SpanFromContext(ctx)
	}
	return t.tracer.Start(propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header)),
		method(r)+" "+route, trace.WithSpanKind(trace.SpanKindServer))
}

// begin counts a request as in progress. The returned function ends that and counts the bytes.
func (t *Telemetry) begin(r *http.Request, route string) (end func(*answer, *countedBody)) {
	t.inFlight.Inc()
	brings := isUpload(route) && r.ContentLength != 0
	if brings {
		t.uploads.Inc()
	}
	return func(answer *answer, body *countedBody) {
		t.inFlight.Dec()
		if brings {
			t.uploads.Dec()
			t.blobBytes.WithLabelValues("pushed").Add(float64(body.bytes))
		}
		if isBlob(route) && r.Method == http.MethodGet && answer.status/100 == 2 {
			t.blobBytes.WithLabelValues("pulled").Add(float64(answer.bytes))
		}
	}
}

// tell records the outcome of a request.
func (t *Telemetry) tell(r *http.Request, n *note, route string, answer *answer,
	body *countedBody, began time.Time, span trace.Span, logger *slog.Logger) {
	took := time.Since(began)
	t.requests.WithLabelValues(route, method(r), strconv.Itoa(answer.status)).Inc()
	t.seconds.WithLabelValues(route, method(r)).Observe(took.Seconds())
	digest := digestOf(r, answer)
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("http.request.method", r.Method), attribute.String("http.route", route), attribute.String("url.path", r.URL.Path),
			attribute.Int("http.response.status_code", answer.status), attribute.String("mlpromote.request_id", requestid.Of(r.Context())),
			attribute.String("mlpromote.principal", n.principal), attribute.String("mlpromote.digest", digest))
		if answer.status >= 500 || answer.status == 0 {
			span.SetStatus(codes.Error, http.StatusText(answer.status))
		}
	}
	level := slog.LevelInfo
	if isProbe(route) && answer.status/100 == 2 {
		level = slog.LevelDebug
	}
	ctx := r.Context()
	if !logger.Enabled(ctx, level) {
		return
	}
	attributes := [11]slog.Attr{
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", answer.status),
		slog.Int64("bytes", answer.bytes), slog.Int64("received", body.bytes), slog.Duration("duration", took),
		slog.String("from", r.RemoteAddr),
	}
	all := attributes[:7]
	if n.principal != "" {
		all = append(all, slog.String("principal", n.principal))
	}
	if digest != "" {
		all = append(all, slog.String("digest", digest))
	}
	all = append(all, slog.String(requestKey, requestid.Of(ctx)))
	if of := span.SpanContext(); of.IsSampled() {
		all = append(all, slog.String(traceKey, of.TraceID().String()))
	}
	// Logger.LogAttrs would look up the line of code, and the time again.
	line := slog.NewRecord(began.Add(took), level, "request", 0)
	line.AddAttrs(all...)
	_ = logger.Handler().Handle(ctx, line) // as Logger does: there is no place to report it
}

// Identified records the principal of a request. It must be inside the handler that
// authenticates.
func Identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p, ok := storage.PrincipalOf(r.Context()); ok {
			if n, ok := r.Context().Value(noteKey{}).(*note); ok {
				n.principal = p.Name
			}
		}
		next.ServeHTTP(w, r)
	})
}

// method returns the method of a request, or OTHER for an unknown method, because it is a
// label.
func method(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "OTHER"
}

// digestOf returns the digest of the content that a request concerns, from the response header
// or the path.
func digestOf(r *http.Request, answer *answer) string {
	if d := answer.Header().Get("Docker-Content-Digest"); d != "" {
		return d
	}
	last := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	if strings.Contains(last, ":") && registry.ValidDigest(registry.Digest(last)) == nil {
		return last
	}
	return ""
}
