package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// operation has the documentation of a route.
type operation struct {
	id       string
	tag      string
	body     any    // a value of the request body's type; nil: no body
	answer   any    // a value of the response's type; nil: not JSON
	status   int    // of the response; 0: 200, or 204 without a response body
	kind     string // media type of a response that is not JSON
	statuses []int  // of problems, in addition to those that every operation can return
	examples []example
}

// example is a request that succeeds. Values are those of path, query and headers.
type example struct {
	name   string
	values map[string]string
	body   any
}

// openAPI generates the OpenAPI 3.1 document of a route table.
func openAPI(table []route) ([]byte, error) {
	docs := operations()
	types := schemas{named: object{}}
	problem := types.of(wire.Problem{})
	paths := make(map[string]object)
	for _, r := range table {
		if paths[r.Pattern] == nil {
			paths[r.Pattern] = object{}
		}
		paths[r.Pattern][strings.ToLower(r.Method)] = describe(r, docs[r.Method+" "+r.Pattern], &types)
	}
	responses := object{
		"NotModified": object{"description": "It matches If-None-Match."},
		"Problem": object{
			"description": "The reason of the failure (RFC 9457).",
			"content":     object{wire.ProblemType: object{"schema": problem}},
		},
	}
	document := object{
		"openapi": "3.1.0",
		"info": object{
			"title": "mlpromote", "version": "1",
			"description": "The registry of mlpromote. Lists are paged: a Link header with rel=\"next\" has the next page. " +
				"Responses to GET have an ETag. " +
				"Unknown members are refused in requests; clients must ignore them in responses.",
			"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers": []any{object{"url": "/"}},
		"paths":   paths,
		"components": object{
			"schemas": types.named, "responses": responses,
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer"}},
		},
		"security": []any{object{}, object{"bearer": []any{}}}, // a service on loopback may need no authentication
	}
	return json.Marshal(document)
}

func (s server) openAPI(*request) (*response, error) {
	return &response{status: http.StatusOK, kind: jsonType, body: s.document}, nil
}

// describe documents one operation.
func describe(r route, doc operation, types *schemas) object {
	described := object{
		"operationId": doc.id, "summary": r.Summary, "tags": []any{doc.tag},
		"x-permission": string(r.Permission), "responses": responses(r, doc, types),
	}
	if parameters := parameters(r, doc); len(parameters) > 0 {
		described["parameters"] = parameters
	}
	if doc.body != nil {
		content := object{"schema": types.of(doc.body)}
		examples := object{}
		for _, e := range doc.examples {
			examples[e.name] = object{"value": e.body}
		}
		content["examples"] = examples
		described["requestBody"] = object{"required": true, "content": object{jsonType: content}}
	}
	return described
}

// responses documents the responses of an operation: success and problems.
func responses(r route, doc operation, types *schemas) object {
	all := object{}
	problems := append([]int{400, 401, 403, 404, 429, 500, 503}, doc.statuses...)
	if doc.body != nil {
		problems = append(problems, 413, 415)
	}
	if r.once() {
		problems = append(problems, 409, 422)
	}
	for _, status := range problems {
		all[strconv.Itoa(status)] = object{"$ref": "#/components/responses/Problem"}
	}
	content := object{}
	if doc.answer != nil {
		content[jsonType] = object{"schema": types.of(doc.answer)}
	}
	if doc.kind != "" {
		content[doc.kind] = object{"schema": object{"type": "string"}}
	}
	success := object{"description": "Done."}
	status := doc.status
	if len(content) > 0 {
		success["content"] = content
	}
	switch {
	case status == 0 && len(content) == 0:
		status = http.StatusNoContent
	case status == 0:
		status = http.StatusOK
	}
	if r.Method == http.MethodGet && doc.kind != streamType {
		all["304"] = object{"$ref": "#/components/responses/NotModified"}
		headers := object{"ETag": header("A strong ETag of the body.")}
		if slices.Contains(r.Query, "cursor") {
			headers["Link"] = header("The next page, as rel=\"next\"; absent on the last page.")
			headers[wire.Partial] = header("\"true\" if the page leaves out what the caller may not read; absent otherwise.")
		}
		success["headers"] = headers
	}
	all[strconv.Itoa(status)] = success
	return all
}

func header(description string) object {
	return object{"description": description, "schema": object{"type": "string"}}
}

// parameters documents path and query parameters, and headers that change the behaviour.
func parameters(r route, doc operation) []any {
	var list []any
	add := func(name, in string) {
		p := object{
			"name":     name,
			"in":       in,
			"required": in == "path" || slices.Contains(required(), doc.id+" "+name),
			"schema":   object{"type": "string"},
		}
		maps.Copy(p, known()[name])
		examples := object{}
		for _, e := range doc.examples {
			if value, ok := e.values[name]; ok {
				examples[e.name] = object{"value": typedExample(p, value)}
			}
		}
		if len(examples) > 0 {
			p["examples"] = examples
		}
		list = append(list, p)
	}
	for part := range strings.SplitSeq(r.Pattern, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			add(strings.TrimSuffix(name, "}"), "path")
		}
	}
	for _, name := range r.Query {
		add(name, "query")
	}
	if r.once() {
		add(wire.IdempotencyKey, "header")
	}
	if doc.kind == streamType {
		add("Last-Event-ID", "header")
	}
	return list
}

// typedExample converts an example's value to the type of the parameter's schema.
func typedExample(parameter object, value string) any {
	if schema, ok := parameter["schema"].(object); ok && schema["type"] == "integer" {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			return n
		}
	}
	return value
}
