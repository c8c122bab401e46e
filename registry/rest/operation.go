// Package rest has the operations of a registry, one row for each: the types of request and answer, the route, the
// permission, whether it reads, decides or changes, examples, and its work. The handlers of the service, their OpenAPI
// document, the client, the guard, the gate of the configuration and telemetry follow from the rows in [Table].
package rest

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Kind is the effect of an operation on a registry. A row without a kind is refused.
type Kind string

// The kinds of operations.
const (
	Reads   Kind = "reads"   // returns facts of the catalog, and content by its digest
	Decides Kind = "decides" // answers by the rules of the configuration, and changes nothing
	Changes Kind = "changes"
)

// Rule is how a permission is checked.
type Rule int

// The rules.
const (
	AtPlace       Rule = iota // the permission for the environment and model of the request
	InEnvironment             // the permission for any model of the environment
	WithAnyGrant              // any grant at all
	AmongReadable             // a list: the permission to read anything; the answer leaves out the rest
)

// Row describes an operation.
type Row struct {
	Name         string // unique; the operationId of OpenAPI, and the name of its span
	Method, Path string
	Summary, Tag string
	// Permission is the permission that the caller needs; without one, everybody is refused.
	Permission storage.Permission
	Rule       Rule
	// AnyOf are several permissions, if the content of a request decides which one is needed. Nil: Permission.
	AnyOf []storage.Permission
	Kind  Kind
	// Whole means that the operation belongs to no environment or model, and that the service checks the permission
	// before it. Else the registry behind it does.
	Whole    bool
	Traced   bool // calls have a span
	Limit    int64
	Form     any    // the request as it is sent, if it is not the one of the operation
	Answer   any    // the same of the answer
	Media    string // media type of an answer that is not JSON
	Status   int    // of success, if it is neither 200 nor 204
	Problems []int  // statuses of problems, in addition to those that all operations have
	Examples []Example
}

// Example is a request that succeeds. It has values for path, query and headers.
type Example struct {
	Name   string
	Values map[string]string
	Body   any
}

// Once reports whether requests with the same idempotency key are carried out once: every POST that changes something.
func (r *Row) Once() bool {
	return r.Method == http.MethodPost && r.Permission != storage.PermissionRead
}

// HasBody reports whether requests have a body.
func (r *Row) HasBody() bool { return r.Method == http.MethodPost || r.Method == http.MethodPut }

// Possible reports whether the caller has a needed permission for anything. Without access control, there is no caller.
func (r *Row) Possible(ctx context.Context) bool {
	caller, ok := storage.PrincipalOf(ctx)
	return !ok || slices.ContainsFunc(append([]storage.Permission{r.Permission}, r.AnyOf...), caller.MayAnywhere)
}

// Place is the environment and the model of a request, and the permission that its caller needs there.
type Place struct {
	Permission         storage.Permission
	Environment, Model string
}

// Operation is a row with its types and its work.
type Operation[Req, Res any] struct {
	Row
	// At returns the environment and the model of a request. Nil: it concerns none.
	At func(q Req) (environment, model string)
	// Needs finds the place and the permission of a request that does not have them. Nil: At and Permission.
	Needs func(ctx context.Context, r api.Interface, q Req) (Place, error)
	// Asks reports whether a request only asks what would be decided. Nil: none does.
	Asks func(q Req) bool
	// Readable is Do for a caller that may not read everything, for rows with the rule AmongReadable.
	Readable func(ctx context.Context, r api.Interface, p storage.Principal, q Req) (Res, error)
	// Do carries the operation out. Nil: the service has a handler of its own.
	Do func(ctx context.Context, r api.Interface, q Req) (Res, error)
	// Check finds what contradicts the request in an answer, for clients. what names the answer.
	Check func(q Req, a Res) (what string, err error)
}

// None is a request without fields, or an answer without content.
type None struct{}

// Any is an operation of any types.
type Any interface {
	Describe() *Row
	// Query lists the names of query parameters, in the order of the form, and those that are required.
	Query() (names, required []string)
	// Documented returns values of the types of body and answer, or nil.
	Documented() (body, answer any)
	// Served reports whether Serve carries the operation out.
	Served() bool
	// Serve reads a request that was sent to a service and carries it out.
	Serve(ctx context.Context, r api.Interface, in Input) (any, error)
	// Validate refuses a row that lacks something. Errors: CodeInvalid.
	Validate() error
}

// Describe returns the row.
func (o *Operation[Req, Res]) Describe() *Row { return &o.Row }

func (o *Operation[Req, Res]) form() any {
	if o.Form != nil {
		return o.Form
	}
	return *new(Req)
}

// Query lists the names of query parameters, and those that are required.
func (o *Operation[Req, Res]) Query() (names, required []string) {
	for _, f := range fieldsOf(o.form()) {
		if f.in != inQuery {
			continue
		}
		if names = append(names, f.name); f.required {
			required = append(required, f.name)
		}
	}
	return names, required
}

// Documented returns values of the types of body and answer, or nil.
func (o *Operation[Req, Res]) Documented() (body, answer any) {
	if o.HasBody() {
		body = o.form()
	}
	if o.Answer != nil {
		return body, o.Answer
	}
	answer = *new(Res)
	if list, ok := answer.(Listed); ok {
		answer, _, _ = list.Listed()
	}
	if _, none := answer.(None); none || o.Media != "" {
		answer = nil
	}
	return body, answer
}

// Served reports whether Serve carries the operation out.
func (o *Operation[Req, Res]) Served() bool { return o.Do != nil }

// Validate refuses a row that lacks something. Errors: CodeInvalid.
func (o *Operation[Req, Res]) Validate() error {
	for what, missing := range map[string]bool{
		"name": o.Name == "", "permission": o.Permission == "", "summary": o.Summary == "", "tag": o.Tag == "", "example": len(o.Examples) == 0,
		"kind":  o.Kind != Reads && o.Kind != Decides && o.Kind != Changes,
		"route": o.Method == "" || !strings.HasPrefix(o.Path, Prefix+"/"),
		"rule":  o.Rule == AtPlace && !o.Whole && o.At == nil && o.Needs == nil && o.Do != nil,
		"list":  (o.Rule == AmongReadable) != (o.Readable != nil) && o.Do != nil,
	} {
		if missing {
			return registry.Errorf(registry.CodeInvalid, "operation %s %s %q: it has no %s", o.Method, o.Path, o.Name, what)
		}
	}
	return nil
}

// Listed is a page of a list.
type Listed interface {
	Listed() (items any, next string, partial bool)
}
