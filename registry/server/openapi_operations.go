package server

import (
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// streamType is the media type of server-sent events.
const streamType = "text/event-stream"

// Placeholders in examples. Tests that run the examples replace them by real digests.
const (
	exampleModel   = "vision/digits"
	exampleRelease = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	exampleEngine  = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
	exampleBundle  = "sha256:3333333333333333333333333333333333333333333333333333333333333333"
	exampleBytes   = "eyJtZWRpYVR5cGUiOiJhcHBsaWNhdGlvbi92bmQuZGV2LnNpZ3N0b3JlLmJ1bmRsZS52MC4zK2pzb24ifQ=="
)

// one returns an example with values of path and query: names and values alternate.
func one(name string, pairs ...string) example { return withBody(name, nil, pairs...) }

func withBody(name string, body any, pairs ...string) example {
	e := example{name: name, body: body, values: make(map[string]string)}
	for i := 0; i < len(pairs); i += 2 {
		e.values[pairs[i]] = pairs[i+1]
	}
	return e
}

// operations documents every route, by method and pattern.
func operations() map[string]operation {
	all := make(map[string]operation)
	for _, group := range []map[string]operation{lists(), ofModels(), changes(), documents(), hooks(), tokens(), configuration()} {
		for route, doc := range group {
			all[route] = doc
		}
	}
	return all
}

func lists() map[string]operation {
	return map[string]operation{
		"GET " + wire.EnvironmentsPath: {id: "environments", tag: "environments", answer: registry.Environments{}, examples: []example{one("all")}},
		"GET " + wire.HeadsPath: {id: "heads", tag: "environments", answer: []registry.Head{}, examples: []example{
			one("all"), one("of an environment", "environment", "prod", "limit", "10"), one("of a model", "model", exampleModel)}},
		"GET " + wire.ModelListPath: {id: "models", tag: "models", answer: []registry.ModelHeads{}, examples: []example{
			one("all"), one("page", "limit", "1"), one("of an environment", "environment", "prod")}},
		"GET " + wire.TargetsPath: {id: "targets", tag: "models", answer: []wire.TargetUse{}, examples: []example{one("all"), one("of an environment", "environment", "prod")}},
		"GET " + wire.HistoryPath: {id: "history", tag: "history", answer: []registry.Event{}, examples: []example{
			one("all"), one("newest promotions", "kind", "promote", "order", "desc", "limit", "5"), one("of a model", "environment", "prod", "model", exampleModel, "after", "1", "before", "1000"),
			one("about an engine", "subject", exampleEngine), one("of a key", "signer", exampleSigner), one("of a caller", "principal", "token:ci")}},
		"GET " + wire.VerificationPath: {id: "verifyHistory", tag: "history", answer: wire.Verification{}, examples: []example{one("all")}},
		"GET " + wire.RestrictionsPath: {id: "restrictions", tag: "environments", answer: registry.SignedRestrictions{}, examples: []example{one("of an environment", "environment", "prod")}},
		"POST " + wire.RestrictionsPath: {id: "restrict", tag: "environments", body: wire.Restriction{}, answer: registry.SignedRestrictions{}, statuses: []int{409}, examples: []example{
			withBody("the next list", wire.Restriction{Environment: "prod", Bundle: []byte("{}")}, wire.IdempotencyKey, "c0ffee-6")}},
		"GET " + wire.TrustBundlePath: {id: "trustBundle", tag: "environments", answer: registry.SignedTrust{}, examples: []example{one("the newest")}},
		"POST " + wire.TrustBundlePath: {id: "publishTrust", tag: "environments", body: wire.TrustBundle{}, answer: registry.SignedTrust{}, statuses: []int{409}, examples: []example{
			withBody("the next", wire.TrustBundle{Bundle: []byte("{} ")}, wire.IdempotencyKey, "c0ffee-7")}},
		"GET " + wire.NodeReportsPath: {id: "nodeReports", tag: "nodes", answer: []registry.NodeReport{}, examples: []example{
			one("of an environment", "environment", "prod"), one("of a model", "environment", "prod", "model", exampleModel, "limit", "10"),
			one("that say nothing any more", "environment", "prod", "silent", "true")}},
		"POST " + wire.NodeReportsPath: {id: "reportNode", tag: "nodes", body: wire.NodeReport{}, answer: registry.NodeReport{}, examples: []example{
			withBody("an engine", object{"node": "edge-7", "nodeType": "g6.xlarge", "environment": "prod", "model": exampleModel, "release": exampleRelease, "engine": exampleEngine})}},
		"GET " + wire.CheckpointPath:       {id: "checkpoint", tag: "history", kind: "text/plain", statuses: []int{422}, examples: []example{one("now")}},
		"GET " + wire.CheckpointsPath:      {id: "checkpoints", tag: "history", answer: []registry.KeptCheckpoint{}, examples: []example{one("all"), one("page", "after", "100", "limit", "10")}},
		"GET " + wire.ProofsPath + "{seq}": {id: "proof", tag: "history", kind: "text/plain", statuses: []int{422}, examples: []example{one("one", "seq", "1")}},
		"GET " + wire.EventsPath: {id: "events", tag: "history", kind: streamType, examples: []example{
			one("from the beginning", "after", "0"), one("go on", "Last-Event-ID", "2", "environment", "prod", "kind", "promote", "model", exampleModel)}},
		"GET " + wire.PromotionsPath + "{seq}": {id: "promotion", tag: "promotions", answer: registry.Event{}, examples: []example{one("one", "seq", examplePromotion)}},
		"GET " + wire.OpenAPIPath:              {id: "openAPI", tag: "document", answer: map[string]any{}, examples: []example{one("this document")}},
	}
}

// examplePromotion is a placeholder for the number of a promotion.
const examplePromotion = "1"

func ofModels() map[string]operation {
	const about = "GET " + modelPrefix
	release := []example{
		one("head", "model", exampleModel, "environment", "prod"), one("by tag", "model", exampleModel, "environment", "staging", "ref", "1.0.0"),
		one("by digest", "model", exampleModel, "environment", "prod", "ref", exampleRelease)}
	node := registry.Node{V: 1, OS: "linux", CPU: registry.NodeCPU{Arch: "amd64", Level: "v3"}, Runtimes: map[string]string{"onnxruntime": "1.30.0"}}
	return map[string]operation{
		about + wire.OpResolve: {id: "resolveFacts", tag: "resolve", answer: registry.Resolution{}, kind: "text/plain", statuses: []int{409}, examples: []example{
			one("by node type", "model", exampleModel, "environment", "prod", "nodeType", "g6.xlarge"),
			one("by facts", "model", exampleModel, "environment", "prod", "arch", "amd64", "level", "v3", "features", "avx2,avx512_vnni", "runtime", "onnxruntime:1.30.0"),
			one("with accelerators", "model", exampleModel, "environment", "staging", "version", "1.0.0", "variant", "fp32", "os", "linux", "arch", "amd64", "level", "v3", "memoryMiB", "64000", "gpuVendor", "nvidia",
				"gpuProduct", "NVIDIA-L4", "gpuArch", "sm_89", "gpuMemoryMiB", "23034", "gpuDriver", "580.65", "gpuCount", "2", "runtime", "onnxruntime:1.30.0"),
			one("by serving image", "model", exampleModel, "environment", "prod", "nodeType", "g6.xlarge", "runtime", "registry.example/serving/onnx:26.1")}},
		"POST " + modelPrefix + wire.OpResolve: {id: "resolve", tag: "resolve", body: wire.ResolveRequest{}, answer: registry.Resolution{}, kind: "text/plain", statuses: []int{409}, examples: []example{
			withBody("node", wire.ResolveRequest{Environment: "prod", Node: &node}, "model", exampleModel),
			withBody("node type", wire.ResolveRequest{Environment: "prod", NodeType: "g6.xlarge", RuntimeName: "registry.example/serving/onnx:26.1"}, "model", exampleModel),
			withBody("kubernetes labels", wire.ResolveRequest{
				Environment: "prod", Runtime: &registry.Runtime{V: 1, Name: "ours", Runtimes: node.Runtimes},
				Labels: map[string]string{"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "feature.node.kubernetes.io/cpu-cpuid.X86_64_V3": "true"},
			}, "model", exampleModel)}},
		about + wire.OpReleases: {id: "releases", tag: "releases", answer: []registry.TaggedRelease{}, examples: []example{one("all", "model", exampleModel, "environment", "staging", "limit", "100")}},
		about + wire.OpRelease:  {id: "release", tag: "releases", answer: registry.Release{}, statuses: []int{422}, examples: release},
		about + wire.OpEngines:  {id: "engines", tag: "releases", answer: []registry.Engine{}, statuses: []int{422}, examples: release},
		about + wire.OpEngine: {id: "engine", tag: "releases", answer: registry.Engine{}, statuses: []int{422}, examples: []example{
			one("by digest", "model", exampleModel, "environment", "prod", "digest", exampleEngine)}},
		about + wire.OpComparison: {id: "comparison", tag: "releases", answer: registry.ReleaseComparison{}, statuses: []int{422}, examples: []example{
			one("with itself", "model", exampleModel, "from", exampleRelease, "to", exampleRelease)}},
		about + wire.OpEvidence:    {id: "evidence", tag: "evidence", answer: wire.Claims{}, statuses: []int{422}, examples: release},
		about + wire.OpQuarantines: {id: "quarantines", tag: "evidence", answer: []wire.Quarantine{}, statuses: []int{422}, examples: release},
		about + wire.OpBundle: {id: "bundle", tag: "evidence", kind: wire.BundleType, statuses: []int{422}, examples: []example{
			one("by digest", "model", exampleModel, "environment", "staging", "digest", exampleBundle)}},
		about + wire.OpPromotionCheck: {id: "promotionCheck", tag: "promotions", answer: registry.PromotionCheck{}, statuses: []int{409, 422}, examples: []example{
			one("a version", "model", exampleModel, "environment", "prod", "version", "1.0.0"), one("a digest", "model", exampleModel, "environment", "prod", "digest", exampleRelease),
			one("a version with its digest", "model", exampleModel, "environment", "prod", "version", "1.0.0", "digest", exampleRelease)}},
		about + wire.OpPromotions: {id: "promotions", tag: "promotions", answer: []registry.Event{}, examples: []example{
			one("all", "model", exampleModel), one("of an environment", "model", exampleModel, "environment", "prod", "limit", "5")}},
	}
}

func changes() map[string]operation {
	const on = "POST " + modelPrefix
	return map[string]operation{
		on + wire.OpEvidence: {id: "attach", tag: "evidence", body: wire.Attachment{}, answer: wire.Attached{}, status: http.StatusCreated, examples: []example{
			withBody("a report", object{"environment": "staging", "release": exampleRelease, "subject": exampleEngine, "bundle": exampleBytes}, "model", exampleModel, wire.IdempotencyKey, "c0ffee-1")}},
		on + wire.OpAttestations: {id: "attest", tag: "evidence", body: wire.Attestation{}, answer: registry.Attested{}, status: http.StatusCreated, examples: []example{
			withBody("an approval", wire.Attestation{Kind: registry.AttestApproval, Environment: "prod", Release: exampleRelease, Comment: "load test passed"}, "model", exampleModel, wire.IdempotencyKey, "c0ffee-8"),
			withBody("a quarantine", wire.Attestation{Kind: registry.AttestQuarantine, Environment: "prod", Release: exampleRelease, Subject: exampleEngine, Comment: "wrong at night"}, "model", exampleModel)}},
		on + wire.OpPublications: {id: "publish", tag: "promotions", body: wire.Publication{}, answer: registry.Head{}, examples: []example{
			withBody("a release", wire.Publication{Release: exampleRelease}, "model", exampleModel)}},
		on + wire.OpPromotions: {id: "promote", tag: "promotions", body: wire.PromoteRequest{}, answer: registry.Promotion{}, examples: []example{
			withBody("ask", wire.PromoteRequest{DryRun: true}, "model", exampleModel),
			withBody("a version", wire.PromoteRequest{Ref: "1.0.0", From: "staging", To: "prod"}, "model", exampleModel, wire.IdempotencyKey, "c0ffee-2")}},
		on + wire.OpRollbacks: {id: "rollback", tag: "promotions", body: wire.RollbackRequest{}, answer: registry.Promotion{}, examples: []example{
			withBody("to a version", wire.RollbackRequest{Environment: "prod", Version: "1.0.0", Reason: "answers are wrong at night"}, "model", exampleModel)}},
		on + wire.OpHolds: {id: "setHold", tag: "promotions", body: wire.Hold{}, examples: []example{
			withBody("wait", wire.Hold{Environment: "prod", Reason: "the answers are being looked at"}, "model", exampleModel)}},
		on + wire.OpAcceptances: {id: "acceptHistory", tag: "history", body: wire.HistoryAcceptance{}, examples: []example{
			withBody("after a restore", wire.HistoryAcceptance{Environment: "prod", Reason: "restored from Tuesday's backup"}, "model", exampleModel)}},
		on + wire.OpHoldReleases: {id: "releaseHold", tag: "promotions", body: wire.HoldRelease{}, examples: []example{
			withBody("go on", wire.HoldRelease{Environment: "prod", Reason: "1.1.0 mends it"}, "model", exampleModel)}},
	}
}

func documents() map[string]operation {
	type table struct {
		path, id, name string
		document, list any
	}
	all := make(map[string]operation)
	for _, t := range []table{
		{wire.NodeTypesPath, "NodeType", "g6.xlarge", registry.Node{V: 1, OS: "linux", CPU: registry.NodeCPU{Arch: "amd64", Level: "v3"}, Runtimes: map[string]string{"onnxruntime": "1.30.0"}}, []registry.Named[registry.Node]{}},
		{wire.RuntimesPath, "Runtime", "registry.example/serving/onnx:26.1", registry.Runtime{V: 1, Name: "ours", Runtimes: map[string]string{"onnxruntime": "1.30.0"}}, []registry.Named[registry.Runtime]{}},
	} {
		this := one("one", "name", t.name)
		all["GET "+t.path] = operation{id: "list" + t.id + "s", tag: "documents", answer: t.list, examples: []example{one("all"), one("page", "after", "g", "limit", "2")}}
		all["GET "+t.path+"/{name}"] = operation{id: "get" + t.id, tag: "documents", answer: t.document, examples: []example{this}}
		all["PUT "+t.path+"/{name}"] = operation{id: "put" + t.id, tag: "documents", body: t.document, examples: []example{withBody("one", t.document, "name", t.name)}}
		all["DELETE "+t.path+"/{name}"] = operation{id: "delete" + t.id, tag: "documents", statuses: []int{409}, examples: []example{this}}
	}
	return all
}

func configuration() map[string]operation {
	body := wire.Adoption{Adopt: registry.Configuration{Environments: exampleConfiguration}}
	return map[string]operation{
		"GET " + wire.OperationsPath:    {id: "operations", tag: "configuration", answer: registry.Operations{}, examples: []example{one("of this service")}},
		"GET " + wire.ConfigurationPath: {id: "configuration", tag: "configuration", answer: registry.ConfigurationStatus{}, examples: []example{one("of this replica")}},
		"POST " + wire.ConfigurationPath: {id: "adoptConfiguration", tag: "configuration", body: body, answer: registry.ConfigurationStatus{}, statuses: []int{409}, examples: []example{
			withBody("what the files say", body, wire.IdempotencyKey, "c0ffee-5")}},
	}
}

// exampleSigner is a placeholder for the identifier of a key.
const exampleSigner = "6666666666666666666666666666666666666666666666666666666666666666"

// exampleConfiguration is a placeholder for the digest of environments.yaml with its keys.
const exampleConfiguration = "sha256:5555555555555555555555555555555555555555555555555555555555555555"

// exampleHook is a placeholder for the identifier of a webhook.
const exampleHook = "abcdefghijklmnopqrstuvwxyz"

func hooks() map[string]operation {
	const path = wire.WebhooksPath + "/{id}"
	body := wire.WebhookRequest{URL: "https://example.com/mlpromote", Environment: "prod", Kinds: []registry.EventKind{registry.EventPromote, registry.EventRollback}}
	return map[string]operation{
		"GET " + wire.WebhooksPath:  {id: "listWebhooks", tag: "webhooks", answer: []wire.Webhook{}, examples: []example{one("all")}},
		"POST " + wire.WebhooksPath: {id: "addWebhook", tag: "webhooks", body: body, answer: wire.Webhook{}, status: http.StatusCreated, examples: []example{withBody("what prod does", body, wire.IdempotencyKey, "c0ffee-3")}},
		"GET " + path:               {id: "getWebhook", tag: "webhooks", answer: wire.Webhook{}, examples: []example{one("one", "id", exampleHook)}},
		"PUT " + path:               {id: "putWebhook", tag: "webhooks", body: body, answer: wire.Webhook{}, examples: []example{withBody("resume", body, "id", exampleHook)}},
		"DELETE " + path:            {id: "deleteWebhook", tag: "webhooks", examples: []example{one("one", "id", exampleHook)}},
	}
}

// exampleToken is a placeholder for the identifier of a token.
const exampleToken = "aaaabbbbccccdddd"

func tokens() map[string]operation {
	const path = wire.TokensPath + "/{id}"
	body := wire.TokenRequest{
		ID: exampleToken, Name: "ci", Hash: "sha256:4444444444444444444444444444444444444444444444444444444444444444",
		Grants: []registry.Grant{{Permissions: []registry.Permission{registry.PermissionRead, registry.PermissionPush}, Environment: "staging", Model: "vision/**"}},
	}
	return map[string]operation{
		"GET " + wire.TokensPath:  {id: "listTokens", tag: "tokens", answer: []registry.Token{}, examples: []example{one("all"), one("page", "limit", "1")}},
		"POST " + wire.TokensPath: {id: "addToken", tag: "tokens", body: body, answer: registry.Token{}, status: http.StatusCreated, statuses: []int{409}, examples: []example{withBody("for builds", body, wire.IdempotencyKey, "c0ffee-4")}},
		"GET " + path:             {id: "getToken", tag: "tokens", answer: registry.Token{}, examples: []example{one("one", "id", exampleToken)}},
		"DELETE " + path:          {id: "revokeToken", tag: "tokens", examples: []example{one("one", "id", exampleToken)}},
	}
}
