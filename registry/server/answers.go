package server

import (
	"net/http"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/internal/lru"
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
