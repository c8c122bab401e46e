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
func (s server) resolveFacts(r *request) (*response, error) {
	at := storage.InstantOf(r.Context()).State()
	values := r.Values
	environment, err := environmentOf(values)
	if err != nil {
		return nil, err
	}
	request := rest.ResolveRequest{
		Environment: environment, Version: values.Get("version"), Variant: values.Get("variant"),
		NodeType: values.Get("nodeType"),
	}
	if request.Runtime, err = s.runtimeOf(r.Context(), values["runtime"]); err != nil {
		return nil, err
	}
	if request.NodeType == "" || slices.ContainsFunc(facts(), values.Has) {
		node, err := nodeOf(values)
		if err != nil {
			return nil, err
		}
		request.Node = &node
	}
	return s.resolve(r, questionOf(r, ""), request.NodeType != "" || request.Runtime != nil, at, request)
}

// resolveNode answers POST: a node document, or the labels of a node.
func (s server) resolveNode(r *request) (*response, error) {
	body, err := raw(r)
	if err != nil {
		return nil, err
	}
	q := questionOf(r, string(body))
	if a, err := s.again(r, q); a != nil || err != nil {
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
	return s.resolve(r, q, request.NodeType != "" || request.RuntimeName != "", at, request)
}

// resolve answers a question that was not answered before. names reports whether it names a node type or
// a runtime, and at is the state of the catalog before any was looked up.
func (s server) resolve(r *request, q question, names bool, at any, request rest.ResolveRequest) (*response, error) {
	node, err := s.nodeOf(r.Context(), request)
	if err != nil {
		return nil, err
	}
	if now := storage.InstantOf(r.Context()); at != now.State() || now.Left() { // a file changes without the catalog
		at = nil
	}
	return s.decide(r, q, answered{names: names, at: at, query: api.ResolveQuery{
		Environment: request.Environment, Model: r.Name, Version: request.Version,
		Node: node, Runtime: request.Runtime, Variant: request.Variant}})
}

// nodeOf returns the node that a request describes.
func (s server) nodeOf(ctx context.Context, request rest.ResolveRequest) (artifact.Node, error) {
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
	return s.checked(*request.Node)
}

// unknown returns the error for an unknown name, with the kind of name.
func unknown(what, name string, err error) error {
	if !registry.HasCode(err, registry.CodeNotFound) {
		return err
	}
	return registry.Errorf(registry.CodeNotFound, "%s %s is unknown", what, name)
}

// checked applies the rules of node documents to a node that came in a request. The empty node is one without any
// features. Errors: CodeInvalid.
func (s server) checked(n artifact.Node) (artifact.Node, error) {
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
func (s server) runtimeOf(ctx context.Context, values []string) (*artifact.Runtime, error) {
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
