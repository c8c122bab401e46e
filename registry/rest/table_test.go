package rest_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Every row is complete, and no two rows have one name or one route.
func TestRows(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, o := range rest.Table() {
		row := o.Describe()
		if err := o.Validate(); err != nil {
			t.Error(err)
		}
		for _, key := range []string{row.Name, row.Method + " " + row.Path} {
			if seen[key] {
				t.Errorf("%s is in the table twice", key)
			}
			seen[key] = true
		}
		if !slices.Contains(storage.Permissions(), row.Permission) {
			t.Errorf("%s has the permission %q, which there is not", row.Name, row.Permission)
		}
		if row.Method == http.MethodGet && row.Kind == rest.Changes {
			t.Errorf("%s is a GET and changes something", row.Name)
		}
	}
}

// A row that lacks something is refused.
func TestIncompleteRows(t *testing.T) {
	t.Parallel()
	for what, forget := range map[string]func(o *rest.Operation[rest.Hold, rest.None]){
		"permission": func(o *rest.Operation[rest.Hold, rest.None]) { o.Permission = "" },
		"route":      func(o *rest.Operation[rest.Hold, rest.None]) { o.Method = "" },
		"kind":       func(o *rest.Operation[rest.Hold, rest.None]) { o.Row.Kind = "" },
		"example":    func(o *rest.Operation[rest.Hold, rest.None]) { o.Examples = nil },
		"rule":       func(o *rest.Operation[rest.Hold, rest.None]) { o.At = nil },
		"list":       func(o *rest.Operation[rest.Hold, rest.None]) { o.Rule = rest.AmongReadable },
	} {
		row := *rest.SetHold
		forget(&row)
		if err := row.Validate(); registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), "it has no "+what) {
			t.Errorf("without a %s: error %v, want one of code invalid that names it", what, err)
		}
	}
}

// Every operation that is declared is in the table, and every method of a registry is a row.
func TestTableIsComplete(t *testing.T) {
	t.Parallel()
	packages, err := parser.ParseDir(token.NewFileSet(), ".", func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0) //nolint:staticcheck // the files of one folder need no build tags
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(packages["rest"], func(n ast.Node) bool {
		if literal, ok := n.(*ast.CompositeLit); ok {
			if generic, ok := literal.Type.(*ast.IndexListExpr); ok && generic.X.(*ast.Ident).Name == "Operation" {
				declared++
			}
		}
		return true
	})
	const each = 4 // rows of a table of documents, declared once for two tables
	if got := len(rest.Table()); got != declared+each {
		t.Errorf("the table has %d rows, want the %d that are declared, and %d of the second table of documents", got, declared, each)
	}
	asked := make(map[string]bool)
	r := rest.Wrap(nil, func(_ context.Context, c rest.Call) error {
		asked[c.Describe().Name] = true
		return nil
	})
	value := reflect.ValueOf(r)
	for m := range reflect.TypeFor[api.Interface]().Methods() {
		before := len(asked)
		arguments := []reflect.Value{reflect.ValueOf(t.Context())}
		for i := 1; i < m.Type.NumIn(); i++ {
			arguments = append(arguments, reflect.Zero(m.Type.In(i)))
		}
		if value.MethodByName(m.Name).Call(arguments); len(asked) != before+1 {
			t.Errorf("%s is no call of a row of its own", m.Name)
		}
	}
}

// What a client sends is what a service reads.
func TestFormsReadBack(t *testing.T) {
	t.Parallel()
	q := rest.ReleasesQuery{Environment: "prod", Model: "vision/digits", Paging: rest.Paging{Limit: 7, Cursor: "1.0.0"}}
	sent, err := rest.Send(&rest.Releases.Row, q)
	if err != nil || sent.Path != "/api/v1/models/vision/digits/releases" || sent.Query.Encode() != "cursor=1.0.0&environment=prod&limit=7" || sent.Body != nil {
		t.Fatalf("got %+v, error %v", sent, err)
	}
	var got rest.ReleasesQuery
	read := *rest.Releases
	read.Do = func(_ context.Context, _ api.Interface, q rest.ReleasesQuery) (storage.Page[storage.TaggedRelease], error) {
		got = q
		return storage.Page[storage.TaggedRelease]{}, nil
	}
	if _, err := read.Serve(t.Context(), nil, rest.Input{Name: "vision/digits", Query: sent.Query}); err != nil || got != q {
		t.Errorf("read back as %+v, error %v, want %+v", got, err, q)
	}
	sent.Query.Del("environment")
	if _, err := read.Serve(t.Context(), nil, rest.Input{Query: sent.Query}); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("without an environment: error %v, want CodeInvalid", err)
	}
	sent.Query.Set("environment", "prod")
	sent.Query.Set("limit", "many")
	if _, err := read.Serve(t.Context(), nil, rest.Input{Query: sent.Query}); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("with a limit that is no number: error %v, want CodeInvalid", err)
	}
	if _, err := rest.Send(&rest.Promote.Row, api.PromoteRequest{Model: "../environments"}); registry.CodeOf(err) != registry.CodeNotFound {
		t.Errorf("a model that leads elsewhere: error %v, want CodeNotFound", err)
	}
}

// A call reaches the registry behind it with its request, and its answer comes back.
func TestWrap(t *testing.T) {
	t.Parallel()
	r := rest.Wrap(chain{}, func(ctx context.Context, c rest.Call) error {
		if environment, model := c.At(); c.Describe() == &rest.SetHold.Row && (environment != "prod" || model != "digits") {
			t.Errorf("the call is about %s in %s, want digits in prod", model, environment)
		}
		return c.Do(ctx)
	})
	if es, err := r.Environments(t.Context()); err != nil || len(es.List) != len(registrytest.Chain().List) {
		t.Errorf("got %d environments, error %v", len(es.List), err)
	}
	if err := r.SetHold(t.Context(), "prod", "digits", "wait"); err == nil || err.Error() != "hold of digits in prod: wait" {
		t.Errorf("got error %v, want that of the registry", err)
	}
}

// chain is a registry with environments, and an error for each hold.
type chain struct{ api.Interface }

func (chain) Environments(context.Context) (policy.Environments, error) {
	return registrytest.Chain(), nil
}

func (chain) SetHold(_ context.Context, environment, model, reason string) error {
	return registry.Errorf(registry.CodeInvalid, "hold of %s in %s: %s", model, environment, reason)
}
