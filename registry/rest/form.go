package rest

import (
	"context"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
)

// Input is a request as a service received it.
type Input struct {
	Name  string // the variable part of the path
	Query url.Values
	Body  func(into any) error // reads JSON strictly
}

const (
	inPath  = "path"
	inQuery = "query"
)

// field is a field of a form that is not in the body: its tag is path:"NAME" or query:"NAME", or query:"NAME,required".
type field struct {
	in, name string
	required bool
	index    []int
}

// fieldsOf lists the fields of a form in path and query, in their order, with those of embedded structs.
func fieldsOf(form any) []field {
	t := reflect.TypeOf(form)
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	var all []field
	for _, f := range reflect.VisibleFields(t) {
		for _, in := range []string{inPath, inQuery} {
			if tag, ok := f.Tag.Lookup(in); ok {
				name, option, _ := strings.Cut(tag, ",")
				all = append(all, field{in, name, option == "required", f.Index})
			}
		}
	}
	return all
}

// Serve reads a request and carries it out. A name that is required and is missing is refused, but for digests, which
// the operation refuses.
func (o *Operation[Req, Res]) Serve(ctx context.Context, r api.Interface, in Input) (any, error) {
	var q Req
	if o.HasBody() {
		if err := in.Body(&q); err != nil {
			return nil, err
		}
	}
	value := reflect.ValueOf(&q).Elem()
	for _, f := range fieldsOf(q) {
		text := in.Name
		if f.in == inQuery {
			text = in.Query.Get(f.name)
		}
		to := value.FieldByIndex(f.index)
		switch {
		case text == "" && f.required && to.Type() == reflect.TypeFor[string]():
			return nil, registry.Errorf(registry.CodeInvalid, "query: the %s is missing: want %s=NAME", f.name, f.name)
		case to.Kind() == reflect.String:
			to.SetString(text)
		case text != "": // what this cannot read, a handler of its own does
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, registry.Errorf(registry.CodeInvalid, "%s %.40q: want a number", f.name, text)
			}
			to.SetInt(n)
		}
	}
	return o.Do(ctx, r, q)
}

// Sent is a request as a client sends it.
type Sent struct {
	Path  string
	Query url.Values
	Body  any // nil: none
}

// Send writes a form, or the request of a call, as a client sends it. Errors: CodeNotFound for an invalid model name,
// which could lead to another path.
func Send(row *Row, form any) (Sent, error) {
	value := reflect.Indirect(reflect.ValueOf(form))
	s := Sent{Path: row.Path, Query: make(url.Values)}
	for _, f := range fieldsOf(value.Interface()) {
		of := value.FieldByIndex(f.index)
		text := fmt.Sprint(of.Interface())
		switch {
		case f.in == inPath && f.name == "model":
			path, err := ModelPath(text, strings.TrimPrefix(row.Path, at("")))
			if err != nil {
				return Sent{}, err
			}
			s.Path = path
		case f.in == inPath:
			s.Path = strings.Replace(s.Path, "{"+f.name+"}", text, 1)
		case !of.IsZero():
			s.Query.Set(f.name, text)
		}
	}
	if row.HasBody() {
		s.Body = value.Interface()
	}
	return s, nil
}

// at returns the path of an operation on a model.
func at(operation string) string { return ModelsPath + "{model}/" + operation }
