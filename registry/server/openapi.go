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

// operation is what a document says of a route beside the route itself.
type operation struct {
	id       string
	tag      string
	body     any    // a value of the type of the request's body; nil: there is none
	answer   any    // a value of the type of the answer; nil: it is no JSON
	status   int    // of the answer; 0: 200, or 204 where there is no answer
	kind     string // media type of an answer that is no JSON
	statuses []int  // of problems, beside those that every operation may have
	examples []example
}

// example is a request that succeeds. Values are those of path, query and headers.
type example struct {
	name   string
	values map[string]string
	body   any
}

// openAPI is the document of a table: OpenAPI 3.1.
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
		"NotModified": object{"description": "It is what If-None-Match names."},
		"Problem":     object{"description": "Why not (RFC 9457).", "content": object{wire.ProblemType: object{"schema": problem}}},
	}
	document := object{
		"openapi": "3.1.0",
		"info": object{
			"title": "mlpromote", "version": "1",
			"description": "The registry of mlpromote. Lists come in pages: a Link header with rel=\"next\" leads on. What is read has an ETag. " +
				"Members that are not described are refused in requests, and to be passed over in answers.",
			"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers": []any{object{"url": "/"}},
		"paths":   paths,
		"components": object{
			"schemas": types.named, "responses": responses,
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer"}},
		},
		"security": []any{object{}, object{"bearer": []any{}}}, // a service on loopback asks nobody
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

// responses are the answers of an operation: what succeeds, and problems.
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
		headers := object{"ETag": header("Of the bytes, strong.")}
		if slices.Contains(r.Query, "cursor") {
			headers["Link"] = header("The next page, as rel=\"next\"; absent on the last.")
		}
		success["headers"] = headers
	}
	all[strconv.Itoa(status)] = success
	return all
}

func header(description string) object {
	return object{"description": description, "schema": object{"type": "string"}}
}

// parameters are those of path and query, and headers that change what is done.
func parameters(r route, doc operation) []any {
	var list []any
	add := func(name, in string) {
		p := object{"name": name, "in": in, "required": in == "path" || slices.Contains(required(), doc.id+" "+name), "schema": object{"type": "string"}}
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

// typedExample is an example's value as the parameter's schema has it.
func typedExample(parameter object, value string) any {
	if schema, ok := parameter["schema"].(object); ok && schema["type"] == "integer" {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			return n
		}
	}
	return value
}
