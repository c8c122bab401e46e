package rest

import (
	"net/http"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// The operations on nodes, and on the document about the API.
var (
	NodeReports = &Operation[NodeReportsQuery, storage.Page[storage.NodeReport]]{Row: Row{
		Name: "nodeReports", Method: get, Path: NodeReportsPath, Tag: "nodes",
		Summary: "What nodes report: which engine of an environment they have; silent=true lists reports that have expired",
		Kind:    Reads, Permission: read,
		Examples: []Example{
			one("of an environment", "environment", "prod"), one("of a model", "environment", "prod", "model", exampleModel, "limit", "10"),
			one("that say nothing any more", "environment", "prod", "silent", "true"),
		},
	}}
	ReportNode = &Operation[NodeReport, storage.NodeReport]{
		Row: Row{
			Name: "reportNode", Method: post, Path: NodeReportsPath, Tag: "nodes",
			Summary: "Report that a node has an engine; a later report of the same caller about the node replaces it",
			Kind:    Changes, Permission: read, Limit: documentBody,
			Examples: []Example{with("an engine", object{
				"node": "edge-7", "nodeType": "g6.xlarge", "environment": "prod", "model": exampleModel, "release": exampleRelease, "engine": exampleEngine,
			})},
		},
		Check: checkNodeReport,
	}
	OpenAPI = &Operation[None, map[string]any]{Row: Row{
		Name: "openAPI", Method: get, Path: OpenAPIPath, Summary: "This document", Tag: "document",
		Kind: Reads, Permission: read, Whole: true, Examples: []Example{one("this document")},
	}}
	NodeTypes = documents("NodeType", "node type", NodeTypesPath, "g6.xlarge", exampleNode)
	Runtimes  = documents("Runtime", "runtime", RuntimesPath, "registry.example/serving/onnx:26.1", exampleRuntime)
)

// Documents are the operations on a table of documents.
type Documents[T any] struct {
	List   *Operation[AfterQuery, []registry.Named[T]]
	Get    *Operation[NameQuery, T]
	Put    *Operation[T, None]
	Delete *Operation[NameQuery, None]
}

func (d Documents[T]) rows() []Any { return []Any{d.List, d.Get, d.Put, d.Delete} }

// documents returns the rows of a table of documents, with an example of a document and its name.
func documents[T any](id, what, path, name string, document T) Documents[T] {
	row := func(verb, method, path, summary string, permission storage.Permission, kind Kind, examples ...Example) Row {
		return Row{
			Name: verb + id, Method: method, Path: path, Summary: summary, Tag: "documents", Kind: kind, Permission: permission, Whole: true, Examples: examples,
		}
	}
	item, this := path+"/{name}", one("one", "name", name)
	d := Documents[T]{
		&Operation[AfterQuery, []registry.Named[T]]{Row: row("list", get, path, "The "+what+"s, by name", read, Reads, one("all"), one("page", "after", "g", "limit", "2"))},
		&Operation[NameQuery, T]{Row: row("get", get, item, "One "+what, read, Reads, this)},
		&Operation[T, None]{Row: row("put", put, item, "Store a "+what+" and replace an earlier one with the same name", administer, Changes, with("one", document, "name", name))},
		&Operation[NameQuery, None]{Row: row("delete", remove, item, "Delete a "+what, administer, Changes, this)},
	}
	d.List.Name += "s"
	d.Put.Limit, d.Delete.Problems = documentBody, []int{http.StatusConflict}
	return d
}

// The operations on webhooks are for administrators only, because a webhook receives all events that it requests.
var (
	ListWebhooks = &Operation[Paging, []Webhook]{Row: Row{
		Name: "listWebhooks", Method: get, Path: WebhooksPath, Summary: "Webhooks with their delivery state", Tag: "webhooks",
		Kind: Reads, Permission: administer, Whole: true, Examples: []Example{one("all")},
	}}
	AddWebhook = &Operation[WebhookRequest, Webhook]{Row: Row{
		Name: "addWebhook", Method: post, Path: WebhooksPath, Summary: "Register a webhook; only this response has its secret", Tag: "webhooks",
		Kind: Changes, Permission: administer, Whole: true, Status: http.StatusCreated, Examples: []Example{with("what prod does", exampleWebhook, IdempotencyKey, "c0ffee-3")},
	}}
	GetWebhook = &Operation[IDQuery, Webhook]{Row: Row{
		Name: "getWebhook", Method: get, Path: WebhooksPath + "/{id}", Summary: "One webhook", Tag: "webhooks",
		Kind: Reads, Permission: administer, Whole: true, Examples: []Example{one("one", "id", exampleHook)},
	}}
	PutWebhook = &Operation[WebhookRequest, Webhook]{Row: Row{
		Name: "putWebhook", Method: put, Path: WebhooksPath + "/{id}", Summary: "Change a webhook, and resume its deliveries", Tag: "webhooks",
		Kind: Changes, Permission: administer, Whole: true, Examples: []Example{with("resume", exampleWebhook, "id", exampleHook)},
	}}
	DeleteWebhook = &Operation[IDQuery, None]{Row: Row{
		Name: "deleteWebhook", Method: remove, Path: WebhooksPath + "/{id}", Summary: "Delete a webhook", Tag: "webhooks",
		Kind: Changes, Permission: administer, Whole: true, Examples: []Example{one("one", "id", exampleHook)},
	}}
)

// The operations on tokens are for administrators only. Clients send the hash of a new secret, never the secret.
var (
	ListTokens = &Operation[Paging, []storage.Token]{Row: Row{
		Name: "listTokens", Method: get, Path: TokensPath, Summary: "All tokens, including expired and revoked ones", Tag: "tokens",
		Kind: Reads, Permission: administer, Whole: true, Examples: []Example{one("all"), one("page", "limit", "1")},
	}}
	AddToken = &Operation[TokenRequest, storage.Token]{Row: Row{
		Name: "addToken", Method: post, Path: TokensPath, Summary: "Create a token; the request has the hash of its secret", Tag: "tokens",
		Kind: Changes, Permission: administer, Whole: true, Status: http.StatusCreated, Problems: []int{http.StatusConflict},
		Examples: []Example{with("for builds", TokenRequest{
			ID: exampleToken, Name: "ci", Hash: registry.Digest("sha256:" + strings.Repeat("4", 64)),
			Grants: []storage.Grant{{Permissions: []storage.Permission{read, storage.PermissionPush}, Environment: "staging", Model: "vision/**"}},
		}, IdempotencyKey, "c0ffee-4")},
	}}
	GetToken = &Operation[IDQuery, storage.Token]{Row: Row{
		Name: "getToken", Method: get, Path: TokensPath + "/{id}", Summary: "One token", Tag: "tokens",
		Kind: Reads, Permission: administer, Whole: true, Examples: []Example{one("one", "id", exampleToken)},
	}}
	RevokeToken = &Operation[IDQuery, None]{Row: Row{
		Name: "revokeToken", Method: remove, Path: TokensPath + "/{id}", Summary: "Revoke a token; it stays in the list", Tag: "tokens",
		Kind: Changes, Permission: administer, Whole: true, Examples: []Example{one("one", "id", exampleToken)},
	}}
)

// The operations on a service are for administrators only, because they name keys, people, hosts and the URLs of webhooks.
var (
	ConfigurationState = &Operation[None, history.ConfigurationStatus]{Row: Row{
		Name: "configuration", Method: get, Path: ConfigurationPath, Summary: "Compare the configuration of this replica with the agreed one", Tag: "configuration",
		Kind: Reads, Permission: administer, Whole: true, Examples: []Example{one("of this replica")},
	}}
	AdoptConfiguration = &Operation[Adoption, history.ConfigurationStatus]{Row: Row{
		Name: "adoptConfiguration", Method: post, Path: ConfigurationPath, Summary: "Adopt the configuration in the files of this replica", Tag: "configuration",
		Kind: Changes, Permission: administer, Whole: true, Problems: []int{http.StatusConflict},
		Examples: []Example{with("what the files say", Adoption{Adopt: history.Configuration{Environments: exampleConfiguration}}, IdempotencyKey, "c0ffee-5")},
	}}
	Administration = &Operation[None, api.Operations]{Row: Row{
		Name: "operations", Method: get, Path: OperationsPath, Summary: "Storage, garbage collection, queues, replicas, keys and webhooks", Tag: "configuration",
		Kind: Reads, Permission: administer, Whole: true, Examples: []Example{one("of this service")},
	}}
)
