package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/client"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/rest"
)

// What a client can ask beside what a api.Interface has, over a network.
func TestClientAsksTheRest(t *testing.T) {
	t.Parallel()
	r := overNetwork(t, onDisk(t))
	c := r.Interface.(*client.Client)
	release := r.Promoted(t, registrytest.Build{})
	if v, err := c.VerifyHistory(t.Context()); err != nil || !v.Intact || v.Events == 0 || v.Last.Validate() != nil {
		t.Errorf("the history is %+v, %v", v, err)
	}
	if targets, err := c.Targets(t.Context(), "prod"); err != nil || len(targets) != 2 || len(targets[1].Engines) != 2 {
		t.Errorf("targets are %+v, %v", targets, err)
	}
	promotions, err := r.History(t.Context(), history.HistoryQuery{Kind: history.EventPromote})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := c.Promotion(t.Context(), promotions[0].Seq); err != nil || e.Hash != promotions[0].Hash {
		t.Errorf("the promotion is %+v, %v", e, err)
	}
	if _, err := c.Promotion(t.Context(), 1); registry.CodeOf(err) != registry.CodeNotFound {
		t.Errorf("no promotion: %v", err)
	}
	labels := map[string]string{"kubernetes.io/arch": "amd64", "feature.node.kubernetes.io/cpu-cpuid.X86_64_V3": "true"}
	q := api.ResolveQuery{Environment: "prod", Model: release.Model,
		Runtime: &artifact.Runtime{V: 1, Name: "x", Runtimes: map[string]string{"onnxruntime": "1.30.0"}}}
	if got, err := c.ResolveLabels(t.Context(), q, labels); err != nil || got.Engine.Label() != "linux-amd64-v3/int8" {
		t.Errorf("resolved is %+v, %v", got, err)
	}
}

func TestClientKeepsWebhooks(t *testing.T) {
	t.Parallel()
	c := overNetwork(t, inMemory(t)).Interface.(*client.Client)
	made, err := c.AddWebhook(t.Context(), rest.WebhookRequest{URL: "https://example.com/hook"})
	if err != nil || !strings.HasPrefix(made.Secret, "whsec_") {
		t.Fatalf("made is %+v, %v", made, err)
	}
	changed, err := c.PutWebhook(t.Context(), made.ID,
		rest.WebhookRequest{URL: "https://example.com/other", Kinds: []history.EventKind{history.EventPromote}})
	if err != nil || changed.URL != "https://example.com/other" || changed.Secret != "" {
		t.Errorf("changed is %+v, %v", changed, err)
	}
	if list, err := c.Webhooks(t.Context()); err != nil || len(list) != 1 || list[0].ID != made.ID {
		t.Errorf("listed are %+v, %v", list, err)
	}
	if err := c.DeleteWebhook(t.Context(), made.ID); err != nil {
		t.Error(err)
	}
	if _, err := c.Webhook(t.Context(), made.ID); registry.CodeOf(err) != registry.CodeNotFound {
		t.Errorf("deleted: %v", err)
	}
}

// A client follows the history, also what was there before it came.
func TestClientFollowsEvents(t *testing.T) {
	t.Parallel()
	r := overNetwork(t, onDisk(t))
	c := r.Interface.(*client.Client)
	first := r.Build(t, registrytest.Build{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var seen []registry.Digest
	for e, err := range c.Events(ctx, history.HistoryQuery{Kind: history.EventPublish, Environment: "staging"}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen = append(seen, e.Release); len(seen) == 2 {
			break
		}
		r.Build(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	}
	if len(seen) != 2 || seen[0] != first.Digest || seen[1] == first.Digest {
		t.Errorf("seen are %v", seen)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, err := range c.Events(stopped, history.HistoryQuery{}) {
		if err == nil {
			t.Error("a stream whose context has ended goes on")
		}
	}
}
