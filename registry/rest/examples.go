package rest

import (
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
)

// object is a JSON object.
type object = map[string]any

// Placeholders in examples. Tests that run the examples replace them by real digests.
const (
	exampleModel         = "vision/digits"
	exampleRelease       = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	exampleEngine        = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
	exampleBundle        = "sha256:3333333333333333333333333333333333333333333333333333333333333333"
	exampleConfiguration = "sha256:5555555555555555555555555555555555555555555555555555555555555555" // environments.yaml with its keys
	exampleSigner        = "6666666666666666666666666666666666666666666666666666666666666666"        // identifier of a key
	exampleBytes         = "eyJtZWRpYVR5cGUiOiJhcHBsaWNhdGlvbi92bmQuZGV2LnNpZ3N0b3JlLmJ1bmRsZS52MC4zK2pzb24ifQ=="
	examplePromotion     = "1"                          // number of its event
	exampleHook          = "abcdefghijklmnopqrstuvwxyz" // identifier of a webhook
	exampleToken         = "aaaabbbbccccdddd"           // identifier of a token
)

var (
	exampleNode    = artifact.Node{V: 1, OS: "linux", CPU: artifact.NodeCPU{Arch: "amd64", Level: "v3"}, Runtimes: map[string]string{"onnxruntime": "1.30.0"}}
	exampleRuntime = artifact.Runtime{V: 1, Name: "ours", Runtimes: map[string]string{"onnxruntime": "1.30.0"}}
	exampleWebhook = WebhookRequest{URL: "https://example.com/mlpromote", Environment: "prod", Kinds: []history.EventKind{history.EventPromote, history.EventRollback}}
)

func exampleReleases() []Example {
	return []Example{
		one("head", "model", exampleModel, "environment", "prod"), one("by tag", "model", exampleModel, "environment", "staging", "ref", "1.0.0"),
		one("by digest", "model", exampleModel, "environment", "prod", "ref", exampleRelease),
	}
}

// one returns an example with values of path and query: names and values alternate.
func one(name string, pairs ...string) Example { return with(name, nil, pairs...) }

// with returns an example with a body.
func with(name string, body any, pairs ...string) Example {
	e := Example{Name: name, Body: body, Values: make(map[string]string)}
	for i := 0; i < len(pairs); i += 2 {
		e.Values[pairs[i]] = pairs[i+1]
	}
	return e
}
