package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	ocidigest "github.com/opencontainers/go-digest"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/trust"
)

// operation is what we read of an operation in the OpenAPI document.
type operation struct {
	method, path string
	OperationID  string
	Parameters   []struct {
		Name, In string
		Required bool
		Examples map[string]struct{ Value any }
	}
	RequestBody struct {
		Content map[string]struct {
			Examples map[string]struct{ Value json.RawMessage }
		}
	}
	Responses map[string]struct {
		Content map[string]json.RawMessage
	}
}

// examples are the names of the requests that the document shows.
func (o operation) examples() []string {
	names := make(map[string]bool)
	required := false
	for _, p := range o.Parameters {
		required = required || p.Required
		for name := range p.Examples {
			names[name] = true
		}
	}
	for name := range o.RequestBody.Content["application/json"].Examples {
		names[name] = true
	}
	if !required && o.method == http.MethodGet {
		names[""] = true // without any parameter
	}
	return slices.Sorted(maps.Keys(names))
}

// apiService is a service with its document, and what stands for the digests in the examples.
type apiService struct {
	url     string
	schemas *jsonschema.Compiler
	instead *strings.Replacer
}

// TestExamplesOfOpenAPI sends every request that the document shows to a service, and holds
// every answer against the schema that the document gives for it.
func TestExamplesOfOpenAPI(t *testing.T) {
	t.Parallel()
	base, r := network(t, onDisk(t), everybody(t))
	first := r.Promoted(t, registrytest.Build{})
	r.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	report := registrytest.Report(first, first.Engines[0], evidence.VerdictPass)
	a := &apiService{url: base}
	claims, _, err := r.Claims(t.Context(), "staging", first)
	if err != nil {
		t.Fatal(err)
	}
	promotions, err := r.History(t.Context(), history.HistoryQuery{Kind: history.EventPromote})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(r.Bundle(t, string(evidence.RoleVerifier), evidence.PredicateParity, report, first.Engines[0].Digest))
	if err != nil {
		t.Fatal(err)
	}
	prod := registrytest.Chain().EnvironmentURI("prod")
	list, err := json.Marshal(r.Bundle(t, string(evidence.RoleApprover), evidence.PredicateRestrictions, evidence.RestrictionList{
		ResourceURI: prod, Counter: 1, IssuedOn: time.Now().UTC(), Reason: "tried it", Entries: []evidence.Restriction{},
	}, ocidigest.FromString(prod)))
	if err != nil {
		t.Fatal(err)
	}
	chain := publishingChain()
	trustEntries, err := policy.DraftTrustBundle(chain, readNoKey)
	if err != nil {
		t.Fatal(err)
	}
	trustEntries.Version, trustEntries.IssuedOn = 1, time.Now().UTC()
	trustEntries.ExpiresOn = trustEntries.IssuedOn.Add(time.Hour)
	trustEntries = trustEntries.WithRestrictions([]restriction.SignedRestrictions{{Environment: "staging"}, {Environment: "prod"}})
	published, err := json.Marshal(r.Bundle(t, string(evidence.RolePublisher), trust.PredicateTrustBundle, trustEntries, chain.Configuration))
	if err != nil {
		t.Fatal(err)
	}
	digest := func(n string) string { return "sha256:" + strings.Repeat(n, 64) }
	instead := []string{
		digest("1"), string(first.Digest), digest("2"), string(first.Engines[0].Digest), digest("3"), string(claims[0].Bundle),
		`"eyJtZWRpYVR5cGUiOiJhcHBsaWNhdGlvbi92bmQuZGV2LnNpZ3N0b3JlLmJ1bmRsZS52MC4zK2pzb24ifQ=="`, string(encoded),
		`"e30="`, string(list), `"e30g"`, string(published), "/promotions/1", fmt.Sprint("/promotions/", promotions[0].Seq),
	}
	a.instead = strings.NewReplacer(instead...)
	operations := a.read(t)
	// Two operations cannot succeed here. acceptHistory needs a history with missing events, which scripts have. attest needs
	// a person who signed in, whom TestInterface has.
	ran := map[string]bool{"acceptHistory": true, "attest": true}
	run := func(o operation) {
		for _, name := range o.examples() {
			body := a.send(t, o, name)
			if o.OperationID == "addWebhook" {
				var made struct{ ID string }
				if err := json.Unmarshal(body, &made); err != nil {
					t.Fatal(err)
				}
				a.instead = strings.NewReplacer(append(instead, "abcdefghijklmnopqrstuvwxyz", made.ID)...)
			}
			ran[o.OperationID] = true
		}
	}
	// What others need comes first, what they cannot do without is taken away last.
	for _, id := range []string{"putNodeType", "putRuntime", "addWebhook", "attach", "publish", "publishTrust", "rollback", "releaseHold"} {
		run(operations[id])
	}
	for _, id := range slices.Sorted(maps.Keys(operations)) {
		if !ran[id] && !strings.HasPrefix(id, "delete") {
			run(operations[id])
		}
	}
	for _, id := range []string{"deleteNodeType", "deleteRuntime", "deleteWebhook"} {
		run(operations[id])
	}
	for id := range operations {
		if !ran[id] {
			t.Errorf("%s has no example", id)
		}
	}
}

// read gets the document and makes its schemas strict: what an answer has and the
// document does not is a mistake in one of them.
func (a *apiService) read(t *testing.T) map[string]operation {
	t.Helper()
	response, err := http.Get(a.url + "/api/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]operation
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	strict, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, schema := range strict.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any) {
		if object := schema.(map[string]any); object["properties"] != nil {
			object["additionalProperties"] = false
		}
	}
	a.schemas = jsonschema.NewCompiler()
	a.schemas.AssertFormat()
	if err := a.schemas.AddResource("openapi.json", strict); err != nil {
		t.Fatal(err)
	}
	operations := make(map[string]operation)
	for path, methods := range document.Paths {
		for method, o := range methods {
			o.method, o.path = strings.ToUpper(method), path
			operations[o.OperationID] = o
		}
	}
	return operations
}

// request is the request that an example shows.
func (a *apiService) request(t *testing.T, o operation, example string) *http.Request {
	t.Helper()
	path, query, header := o.path, make(url.Values), make(http.Header)
	for _, p := range o.Parameters {
		e, ok := p.Examples[example]
		if !ok {
			continue
		}
		switch value := fmt.Sprint(e.Value); p.In {
		case "path":
			path = strings.Replace(path, "{"+p.Name+"}", strings.ReplaceAll(value, "/", "%2F"), 1)
		case "query":
			query.Add(p.Name, value)
		default:
			header.Set(p.Name, value)
		}
	}
	body := a.instead.Replace(string(o.RequestBody.Content["application/json"].Examples[example].Value))
	target := a.url + a.instead.Replace(path) + "?" + strings.ReplaceAll(a.instead.Replace(strings.ReplaceAll(query.Encode(), "%3A", ":")), "+", "%2B")
	r, err := http.NewRequestWithContext(t.Context(), o.method, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// send sends an example's request and judges the answer.
func (a *apiService) send(t *testing.T, o operation, example string) []byte {
	t.Helper()
	name := o.OperationID + " " + example
	response, err := http.DefaultClient.Do(a.request(t, o, example))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	status := fmt.Sprint(response.StatusCode)
	documented, known := o.Responses[status]
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if _, typed := documented.Content[kind]; response.StatusCode/100 != 2 || !known || typed != (kind != "") {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		t.Errorf("%s: %s of type %q, which is not documented, or no success\n%s", name, response.Status, kind, body)
		return nil
	}
	if kind == "text/event-stream" {
		line := make([]byte, 3)
		if _, err := io.ReadFull(response.Body, line); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if kind == "application/json" {
		a.validate(t, name, o, status, body)
	}
	if tag := response.Header.Get("ETag"); (tag != "") != (o.method == http.MethodGet) {
		t.Errorf("%s: the tag is %q", name, tag)
	}
	return body
}

// validate holds a body against its schema.
func (a *apiService) validate(t *testing.T, name string, o operation, status string, body []byte) {
	t.Helper()
	pointer := "/paths/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(o.path) +
		"/" + strings.ToLower(o.method) + "/responses/" + status + "/content/application~1json/schema"
	schema, err := a.schemas.Compile("openapi.json#" + pointer)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%s: %v\n%s", name, err, body)
	}
}
