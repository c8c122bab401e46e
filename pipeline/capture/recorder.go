package capture

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
)

// Recorder forwards requests and records cases from them. It is an http.Handler.
type Recorder struct {
	options Options
	proxy   *httputil.ReverseProxy
	writer  *cases.Writer
	budget  budget
	queue   chan *exchange
	done    chan struct{} // closed when the queue is read

	mu      sync.Mutex // guards what follows
	closed  bool
	random  *rand.Rand
	model   string
	counted Recorded
	skipped map[string]*Skipped
	warned  map[string]bool

	reading // of the goroutine that reads the queue
}

// wants reports whether a request for a model is copied, and counts it.
func (r *Recorder) wants(model string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counted.Requests++
	if r.model != "" && model != r.model {
		r.skipLocked(skipModel, model)
		return false
	}
	return r.options.Share >= 1 || r.random.Float64() < r.options.Share
}

// skip counts what is not recorded, and tells people about the first for each reason.
func (r *Recorder) skip(reason, example string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skipLocked(reason, example)
}

func (r *Recorder) skipLocked(reason, example string) {
	if s := r.skipped[reason]; s != nil {
		s.Count++
		return
	}
	r.skipped[reason] = &Skipped{reason, 1, example}
	if example != "" {
		example = ": " + example
	}
	go r.options.Note("not recorded: a request %s%s; the next ones are counted", reason, example)
}

// warnOnce tells people something once.
func (r *Recorder) warnOnce(key, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.warned[key] {
		r.warned[key] = true
		go r.options.Note("warning: %s", fmt.Sprintf(format, args...))
	}
}

// isOfLocked reports whether the model is the one that is recorded. Where none is known, it is the first that
// the service answers for: a name that it does not know must not keep out all others.
func (r *Recorder) isOfLocked(model string) bool {
	if r.model == "" && !r.closed {
		r.model = model
		go r.options.Note("recording the requests for model %s", model)
	}
	return r.model == "" || model == r.model
}

// hand gives an exchange to the goroutine that reads, and never waits for it.
func (r *Recorder) hand(x *exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reason := skipBusy
	switch {
	case x.status == 0:
		reason = skipUnanswered
	case x.status >= 300:
		reason = skipAnswer
	case !r.isOfLocked(x.model):
		r.skipLocked(skipModel, x.model)
		x.release()
		return
	case !r.closed:
		select {
		case r.queue <- x:
			return
		default:
		}
	}
	example := ""
	if x.status >= 300 {
		example = fmt.Sprintf("status %d", x.status)
	}
	r.skipLocked(reason, example)
	x.release()
}

func (r *Recorder) result() Recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.counted
	out.Folder, out.Model, out.Cases, out.Files = r.options.To, r.model, r.writer.Count(), r.writer.Files()
	out.Read, out.Duplicates = r.offered, r.duplicates
	out.Skipped = []Skipped{}
	for _, reason := range slices.Sorted(maps.Keys(r.skipped)) {
		out.Skipped = append(out.Skipped, *r.skipped[reason])
	}
	if out.Files == nil {
		out.Files = []string{}
	}
	return out
}

// None is the error of a recording that has no cases. Its code is CodeNotFound.
func (r Recorded) None() error {
	err := registry.Errorf(registry.CodeNotFound, "no cases were recorded: %s for inferences came", registry.Count(r.Requests, "request"))
	if r.Requests == 0 {
		return registry.WithHint(err, "clients have to send POST /v2/models/NAME/infer to the address of the proxy; gRPC is not recorded")
	}
	var why []string
	for _, s := range r.Skipped {
		why = append(why, fmt.Sprintf("%d %s", s.Count, s.Reason))
	}
	if len(why) == 0 && r.Duplicates > 0 {
		why = []string{fmt.Sprintf("%d cases are in the folder already", r.Duplicates)}
	}
	if len(why) == 0 {
		return err
	}
	return registry.WithHint(err, "%s", strings.Join(why, "; "))
}

// reading is what the goroutine that reads copies knows.
type reading struct {
	sampler    cases.Sampler
	signature  string    // of all cases; empty before the first
	batches    *batching // nil before the first request
	offered    int
	duplicates int
	told       int // cases that people were told of
}
