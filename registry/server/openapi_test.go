package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi/datamodel"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/rest"
)

// document is what we read of an OpenAPI document.
type document struct {
	OpenAPI string
	Paths   map[string]map[string]struct {
		OperationID string
		Parameters  []struct {
			Name, In string
			Required bool
			Examples map[string]any
		}
		RequestBody struct {
			Content map[string]struct{ Examples map[string]any }
		}
		Responses map[string]any
	}
}

func readDocument(t *testing.T) ([]byte, document) {
	t.Helper()
	got := setup(t).do("GET", "/api/v1/openapi.json", "")
	if got.Code != http.StatusOK || got.Header().Get("Content-Type") != "application/json" || got.Header().Get("ETag") == "" {
		t.Fatalf("%d %v", got.Code, got.Header())
	}
	var d document
	if err := json.Unmarshal(got.Body.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	return got.Body.Bytes(), d
}

// The document is one of OpenAPI 3.1, as the schema of that specification has it.
func TestDocumentIsOpenAPI(t *testing.T) {
	t.Parallel()
	text, d := readDocument(t)
	if d.OpenAPI != "3.1.0" {
		t.Errorf("it is OpenAPI %q", d.OpenAPI)
	}
	specification, err := jsonschema.UnmarshalJSON(strings.NewReader(datamodel.OpenAPI31SchemaData))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("openapi.json", specification); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(instance); err != nil {
		t.Error(err)
	}
	broken := bytes.Replace(text, []byte(`"openapi":"3.1.0"`), []byte(`"openapi":"2.0"`), 1)
	if instance, err = jsonschema.UnmarshalJSON(bytes.NewReader(broken)); err != nil || schema.Validate(instance) == nil {
		t.Errorf("a document of another version is accepted too (%v)", err)
	}
}

// What is served is documented, what is documented is served, parameter by parameter, and
// every parameter and body has an example.
func TestDocumentIsComplete(t *testing.T) {
	t.Parallel()
	_, d := readDocument(t)
	ids := make(map[string]bool)
	served := 0
	for _, o := range rest.Table() {
		r := o.Describe()
		reads, _ := o.Query()
		name := r.Method + " " + r.Path
		operation, ok := d.Paths[r.Path][strings.ToLower(r.Method)]
		if !ok {
			t.Errorf("%s is not documented", name)
			continue
		}
		served++
		if operation.OperationID == "" || ids[operation.OperationID] {
			t.Errorf("%s has the identifier %q", name, operation.OperationID)
		}
		ids[operation.OperationID] = true
		var query []string
		for _, p := range operation.Parameters {
			if p.In == "query" {
				query = append(query, p.Name)
			}
			if len(p.Examples) == 0 && !slices.Contains([]string{"cursor", "gpuMig"}, p.Name) && p.In != "header" && !slices.Contains(optional(), p.Name) {
				t.Errorf("%s: no example for %s", name, p.Name)
			}
		}
		if !slices.Equal(query, reads) {
			t.Errorf("%s documents the query %v, and reads %v", name, query, reads)
		}
		body := operation.RequestBody.Content["application/json"]
		if (r.Method == http.MethodPost || r.Method == http.MethodPut) != (len(body.Examples) > 0) {
			t.Errorf("%s has %d examples of a body", name, len(body.Examples))
		}
		for _, status := range []string{"400", "401", "403", "404", "429", "500", "503"} {
			if operation.Responses[status] == nil {
				t.Errorf("%s does not say what %s means", name, status)
			}
		}
	}
	documented := 0
	for _, operations := range d.Paths {
		documented += len(operations)
	}
	if documented != served {
		t.Errorf("%d operations are documented, and %d served", documented, served)
	}
}

// optional are parameters that mean the same wherever they stand, so that an example of
// some operation does.
func optional() []string { return []string{"limit", "environment", "version", "kind", "subject"} }

// Every problem that a registry's error can become is documented where it can.
func TestStatusesOfCodes(t *testing.T) {
	t.Parallel()
	_, d := readDocument(t)
	promote := d.Paths["/api/v1/models/{model}/promotions"]["post"]
	for _, code := range []registry.Code{
		registry.CodeInternal, registry.CodeUnavailable, registry.CodeNotFound, registry.CodeConflict,
		registry.CodeInvalid, registry.CodePolicy, registry.CodeForbidden, registry.CodeTrust, registry.CodeDigest,
	} {
		text, _ := json.Marshal(code.HTTPStatus())
		if promote.Responses[string(text)] == nil {
			t.Errorf("a promotion that ends with %s: %s is not documented", code, text)
		}
	}
}
