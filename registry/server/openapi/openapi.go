// Package openapi writes the OpenAPI document of the REST API from the rows of its operations.
package openapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry/rest"
)

// mediaType is the type of all documented requests and answers.
const mediaType = "application/json"

// Document generates the OpenAPI 3.1 document of operations.
func Document(table []rest.Any) ([]byte, error) {
	types := schemas{named: object{}}
	problem := types.of(rest.Problem{})
	paths := make(map[string]object)
	for _, o := range table {
		r := o.Describe()
		if paths[r.Path] == nil {
			paths[r.Path] = object{}
		}
		paths[r.Path][strings.ToLower(r.Method)] = describe(o, &types)
	}
	responses := object{
		"NotModified": object{"description": "It matches If-None-Match."},
		"Problem": object{
			"description": "The reason of the failure (RFC 9457).",
			"content":     object{rest.ProblemType: object{"schema": problem}},
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

// describe documents one operation.
func describe(o rest.Any, types *schemas) object {
	r := o.Describe()
	body, answer := o.Documented()
	described := object{
		"operationId": r.Name, "summary": r.Summary, "tags": []any{r.Tag},
		"x-permission": string(r.Permission), "responses": responses(o, answer, types),
	}
	if parameters := parameters(o); len(parameters) > 0 {
		described["parameters"] = parameters
	}
	if body != nil {
		content := object{"schema": types.of(body)}
		examples := object{}
		for _, e := range r.Examples {
			examples[e.Name] = object{"value": e.Body}
		}
		content["examples"] = examples
		described["requestBody"] = object{"required": true, "content": object{mediaType: content}}
	}
	return described
}

// responses documents the responses of an operation: success and problems.
func responses(o rest.Any, answer any, types *schemas) object {
	r, all := o.Describe(), object{}
	problems := append([]int{400, 401, 403, 404, 429, 500, 503}, r.Problems...)
	if r.HasBody() {
		problems = append(problems, 413, 415)
	}
	if r.Once() {
		problems = append(problems, 409, 422)
	}
	for _, status := range problems {
		all[strconv.Itoa(status)] = object{"$ref": "#/components/responses/Problem"}
	}
	content := object{}
	if answer != nil {
		content[mediaType] = object{"schema": types.of(answer)}
	}
	if r.Media != "" {
		content[r.Media] = object{"schema": object{"type": "string"}}
	}
	success := object{"description": "Done."}
	status := r.Status
	if len(content) > 0 {
		success["content"] = content
	}
	switch {
	case status == 0 && len(content) == 0:
		status = http.StatusNoContent
	case status == 0:
		status = http.StatusOK
	}
	if r.Method == http.MethodGet && r.Media != rest.StreamType {
		all["304"] = object{"$ref": "#/components/responses/NotModified"}
		headers := object{"ETag": header("A strong ETag of the body.")}
		if names, _ := o.Query(); slices.Contains(names, "cursor") {
			headers["Link"] = header("The next page, as rel=\"next\"; absent on the last page.")
			headers[rest.Partial] = header("\"true\" if the page leaves out what the caller may not read; absent otherwise.")
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
func parameters(o rest.Any) []any {
	var list []any
	r := o.Describe()
	query, required := o.Query()
	add := func(name, in string) {
		p := object{
			"name":     name,
			"in":       in,
			"required": in == "path" || slices.Contains(required, name),
			"schema":   object{"type": "string"},
		}
		maps.Copy(p, known()[name])
		examples := object{}
		for _, e := range r.Examples {
			if value, ok := e.Values[name]; ok {
				examples[e.Name] = object{"value": typedExample(p, value)}
			}
		}
		if len(examples) > 0 {
			p["examples"] = examples
		}
		list = append(list, p)
	}
	for part := range strings.SplitSeq(r.Path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			add(strings.TrimSuffix(name, "}"), "path")
		}
	}
	for _, name := range query {
		add(name, "query")
	}
	if r.Once() {
		add(rest.IdempotencyKey, "header")
	}
	if r.Media == rest.StreamType {
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
