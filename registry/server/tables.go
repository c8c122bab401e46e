package server

import (
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/rest"
)

// tableOf has the operations on a table of documents. read parses the body of a document.
type tableOf[T any] struct {
	what  string
	table registry.Table[T]
	read  func(name string, data []byte) (T, error)
}

func nodeTypes(s server) tableOf[artifact.Node] {
	return tableOf[artifact.Node]{"node type", s.NodeTypes, s.ReadNode}
}

func runtimes(s server) tableOf[artifact.Runtime] {
	return tableOf[artifact.Runtime]{"runtime", s.Runtimes, s.ReadRuntime}
}

// handleTable adds the handlers of a table of documents.
func handleTable[T any](all map[rest.Any]handler, rows rest.Documents[T], of func(s server) tableOf[T]) {
	all[rows.List] = func(s server, r *request) (*response, error) { return of(s).list(r) }
	all[rows.Get] = func(s server, r *request) (*response, error) { return of(s).get(r) }
	all[rows.Put] = func(s server, r *request) (*response, error) { return of(s).put(r) }
	all[rows.Delete] = func(s server, r *request) (*response, error) { return of(s).delete(r) }
}

func (t tableOf[T]) list(r *request) (*response, error) {
	after, limit, err := pageOf(r.Values)
	if err != nil {
		return nil, err
	}
	if after == "" {
		after = r.Values.Get("after")
	}
	items, err := t.table.List(r.Context(), after, limit+1)
	if err != nil {
		return nil, err
	}
	items, next := cut(items, limit, func(d registry.Named[T]) string { return d.Name })
	return page(r, items, next)
}

func (t tableOf[T]) get(r *request) (*response, error) {
	if err := registry.ValidateName(r.Name); err != nil {
		return nil, err
	}
	document, err := t.table.Get(r.Context(), r.Name)
	if err != nil {
		return nil, unknown(t.what, r.Name, err)
	}
	return ok(document)
}

func (t tableOf[T]) put(r *request) (*response, error) {
	if err := registry.ValidateName(r.Name); err != nil {
		return nil, err
	}
	data, err := raw(r)
	if err != nil {
		return nil, err
	}
	document, err := t.read(r.Name, data)
	if err != nil {
		return nil, err
	}
	if err := t.table.Put(r.Context(), r.Name, document); err != nil {
		return nil, err
	}
	return done()
}

func (t tableOf[T]) delete(r *request) (*response, error) {
	if err := registry.ValidateName(r.Name); err != nil {
		return nil, err
	}
	if err := t.table.Delete(r.Context(), r.Name); err != nil {
		return nil, err
	}
	return done()
}
