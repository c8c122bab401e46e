package server

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// resolveFacts answers GET: a node type by name, or the facts of a node in the query.
func resolveFacts(s server, r *request) (*response, error) {
	at := storage.InstantOf(r.Context()).State()
	values := r.Values
	environment, err := environmentOf(values)
	if err != nil {
		return nil, err
	}
	request := rest.ResolveRequest{
		Environment: environment, Version: values.Get("version"), Variant: values.Get("variant"),
		NodeType: values.Get("nodeType"), As: values.Get("as"),
	}
	if request.Runtime, err = runtimeOf(r.Context(), s, values["runtime"]); err != nil {
		return nil, err
	}
	if request.NodeType == "" || slices.ContainsFunc(facts(), values.Has) {
		node, err := nodeOf(values)
		if err != nil {
			return nil, err
		}
		request.Node = &node
	}
	return resolve(s, r, questionOf(r, ""), request.NodeType != "" || request.Runtime != nil, at, request)
}

// resolveNode answers POST: a node document, or the labels of a node.
func resolveNode(s server, r *request) (*response, error) {
	body, err := raw(r)
	if err != nil {
		return nil, err
	}
	q := questionOf(r, string(body))
	if a, err := answerAgain(s, r, q); a != nil || err != nil {
		return a, err
	}
	at := storage.InstantOf(r.Context()).State()
	var request rest.ResolveRequest
	if err := decode(body, &request); err != nil {
		return nil, err
	}
	if request.RuntimeName != "" {
		if request.Runtime != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "resolve: want a runtime or the name of one, not both")
		}
		runtime, err := s.Runtimes.Get(r.Context(), request.RuntimeName)
		if err != nil {
			return nil, unknown("runtime", request.RuntimeName, err)
		}
		request.Runtime = &runtime
	}
	return resolve(s, r, q, request.NodeType != "" || request.RuntimeName != "", at, request)
}

// resolve answers a question that was not answered before. names reports whether it names a node type or
// a runtime, and at is the state of the catalog before any was looked up.
func resolve(s server, r *request, q question, names bool, at any, request rest.ResolveRequest) (*response, error) {
	as, err := api.ParseForm(request.As)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "resolve: %w", err)
	}
	node, err := nodeOfRequest(r.Context(), s, request)
	if err != nil {
		return nil, err
	}
	if now := storage.InstantOf(r.Context()); at != now.State() || now.Left() { // a file changes without the catalog
		at = nil
	}
	return decideAnswer(s, r, q, answered{names: names, at: at, query: api.ResolveQuery{
		Environment: request.Environment, Model: r.Name, Version: request.Version,
		Node: node, Runtime: request.Runtime, Variant: request.Variant, As: as}})
}

// nodeOfRequest returns the node that a request describes.
func nodeOfRequest(ctx context.Context, s server, request rest.ResolveRequest) (artifact.Node, error) {
	said := 0
	for _, given := range []bool{request.Node != nil, request.NodeType != "", request.Labels != nil} {
		if given {
			said++
		}
	}
	switch {
	case said != 1:
		return artifact.Node{}, registry.Errorf(registry.CodeInvalid,
			"resolve: want one of a node, a node type and the labels of a node")
	case request.Labels != nil:
		return s.ReadLabels(request.Labels)
	case request.NodeType != "":
		if err := registry.ValidateName(request.NodeType); err != nil {
			return artifact.Node{}, err
		}
		node, err := s.NodeTypes.Get(ctx, request.NodeType)
		return node, unknown("node type", request.NodeType, err)
	}
	return checkNode(s, *request.Node)
}

// checkNode applies the rules of node documents to a node that came in a request. The empty node is one without any
// features. Errors: CodeInvalid.
func checkNode(s server, n artifact.Node) (artifact.Node, error) {
	if reflect.DeepEqual(n, artifact.Node{}) {
		return n, nil
	}
	n, err := s.CheckNode(n)
	if err != nil {
		return artifact.Node{}, registry.Errorf(registry.CodeOf(err), "resolve: %w", err)
	}
	return n, nil
}

// runtimeOf parses names of known runtimes, or NAME:VERSION, once for each runtime. An empty
// list means the runtimes of the node.
func runtimeOf(ctx context.Context, s server, values []string) (*artifact.Runtime, error) {
	if len(values) == 0 {
		return nil, nil
	}
	runtime := &artifact.Runtime{V: 1, Name: strings.Join(values, " "), Runtimes: make(map[string]string)}
	for _, v := range values {
		known, err := s.Runtimes.Get(ctx, v)
		if err == nil {
			maps.Copy(runtime.Runtimes, known.Runtimes)
			continue
		}
		if !registry.HasCode(err, registry.CodeNotFound) {
			return nil, err
		}
		name, version, ok := strings.Cut(v, ":")
		if !ok || name == "" || version == "" {
			return nil, registry.Errorf(registry.CodeInvalid,
				"runtime %q: want the name of a known runtime, or NAME:VERSION, for example onnxruntime:1.30.0", v)
		}
		runtime.Runtimes[name] = version
	}
	return runtime, nil
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
