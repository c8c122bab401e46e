package server

import (
	"net/http"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/internal/lru"
	"mlpromote.dev/mlpromote/registry/storage"
)

// answersBytes limits the memory of remembered answers to resolves, maxQuestion the question of one.
const (
	answersBytes = 16 << 20
	maxQuestion  = 8 << 10
)

// question is all of a request that the answer to a resolve depends on. What the caller may see is
// asked of the registry each time.
type question struct{ method, path, host, accept, query, body string }

// answered is the answer to a question. It decides nothing: the registry answers every request, and the
// response is sent again only if the registry says that the answer is the one before.
type answered struct {
	query    api.ResolveQuery // with the answer as Known
	names    bool             // the question names a node type or a runtime
	at       any              // state of the catalog that the names were looked up in; nil: unknown
	response *response
}

func newAnswers() *lru.Cache[question, answered] { return lru.New[question, answered](answersBytes) }

func questionOf(r *request, body string) question {
	return question{r.Method, r.URL.Path, r.Host, strings.Join(r.Header["Accept"], ","), r.URL.RawQuery, body}
}

// answerAgain returns the response to a question that was answered before, or nil. What the names in the
// question mean must be known to be the same: nobody has written to the catalog since.
func answerAgain(s server, r *request, q question) (*response, error) {
	known, ok := s.answers.Get(q)
	if !ok || known.names && known.at != storage.InstantOf(r.Context()).State() {
		return nil, nil
	}
	return decideAnswer(s, r, q, known)
}

// decideAnswer asks the registry. It encodes an answer that is not the one before, and remembers it.
func decideAnswer(s server, r *request, q question, a answered) (*response, error) {
	resolution, err := s.Registry.Resolve(r.Context(), a.query)
	if err != nil {
		return nil, refusal{error: err, resolution: &resolution}
	}
	if known := a.query.Known; known != nil && known.Ground == resolution.Ground {
		return a.response, nil
	}
	if a.response, err = resolved(r, resolution); err != nil {
		return nil, err
	}
	size := len(q.query) + len(q.body) + len(q.accept)
	if resolution.Ground != nil && (!a.names || a.at != nil) && size <= maxQuestion {
		a.query.Known = &resolution
		const times = 4 // the JSON, compressed, and as values
		s.answers.Put(q, a, size+times*len(a.response.body))
	}
	return a.response, nil
}

// resolved returns the response with a resolution, in which references have the name of the service
// that the client used.
func resolved(r *request, resolution api.Resolution) (*response, error) {
	if ref, err := registry.ParseRef(resolution.Ref); err == nil && ref.Host == "" {
		resolution.Ref = r.Host + "/" + resolution.Ref
	}
	if wantsText(r) {
		a := &response{status: http.StatusOK, kind: "text/plain; charset=utf-8", body: []byte(resolution.Ref + "\n")}
		return a.with("Vary", "Accept").sentAgain(), nil
	}
	a, err := ok(resolution)
	if err != nil {
		return nil, err
	}
	return a.with("Vary", "Accept, Accept-Encoding").sentAgain(), nil
}
