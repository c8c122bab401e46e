package client_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/client"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Asks a service which engine of a release a node should load, and reads the reasons when no engine fits.
func Example() {
	url, content, stop := serve()
	defer stop()
	c, err := client.New(client.Config{URL: url, Content: content})
	if err != nil {
		log.Fatal(err)
	}
	for _, level := range []string{"v3", "v2", "v1"} {
		found, err := c.Resolve(context.Background(), api.ResolveQuery{
			Environment: "staging", Model: "vision/digits",
			Node: artifact.Node{
				V: 1, OS: "linux", CPU: artifact.NodeCPU{Arch: "amd64", Level: level}, Runtimes: map[string]string{"onnxruntime": "1.30.0"},
			},
		})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(level, found.Version, found.Engine.Label())
	}
	// Output:
	// v3 1.0.0 linux-amd64-v3/int8
	// v2 1.0.0 linux-amd64-v2/fp32
	// no engine of vision/digits 1.0.0 in staging for this node and runtime:
	//   linux-amd64-v3/int8: cpu.level: needs v3, has v1
	//   linux-amd64-v2/fp32: cpu.level: needs v2, has v1
}

// serve runs a service in memory that has one release in staging. A program would name the URL of its
// service, and read content with package oci over the service's /v2/.
func serve() (url string, content storage.Content, stop func()) {
	ctx := context.Background()
	db, blobs, keys := mem.New(), mem.NewBlobs(), registrytest.NewKeys(registrytest.RoleKeys())
	parts := oci.New(func(_ context.Context, name string) (oci.Repository, error) { return oci.Local(blobs, db, name), nil }, oci.Options{})
	svc, err := service.New(backend.Backend{
		RestrictionBundles: mem.NewTable[storage.RestrictionBundle](),
		Environments:       registrytest.Chain(), Catalog: db, Records: db, Listing: db, Intents: db, Content: parts, Verify: keys.Verify, Sign: keys.Sign,
	})
	if err != nil {
		log.Fatal(err)
	}
	build := registrytest.Build{Engines: []artifact.Engine{registrytest.MakeEngine("v2", "fp32"), registrytest.MakeEngine("v3", "int8")}}
	release, err := build.TryStore(ctx, parts)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := svc.Publish(ctx, api.Publication{Model: "vision/digits", Release: release}); err != nil {
		log.Fatal(err)
	}
	read, err := svc.Release(ctx, "staging", "vision/digits", "")
	if err != nil {
		log.Fatal(err)
	}
	for _, subject := range read.Subjects() {
		statement, err := evidence.NewStatement(evidence.PredicateSign, struct{}{},
			evidence.StatementSubject{Digest: evidence.NewDigestSet(subject.Digest)})
		if err != nil {
			log.Fatal(err)
		}
		bundle, err := keys.Sign(ctx, evidence.RoleBuilder, statement)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := svc.Attach(ctx, api.Attachment{
			Environment: "staging", Model: "vision/digits", Release: release, Subject: subject.Digest, Bundle: bundle,
		}); err != nil {
			log.Fatal(err)
		}
	}
	handler, err := server.New(server.Config{
		Registry: svc, Preview: service.Remember(svc, db, 1<<20), Authorize: func(context.Context, storage.Permission, string, string) error { return nil }, History: db.History,
		NodeTypes: mem.NewTable[artifact.Node](), Runtimes: mem.NewTable[artifact.Runtime](),
		Nodes:    service.NodeReports{Table: mem.NewTable[storage.NodeReport](), Inspector: svc, Clock: db},
		Webhooks: mem.NewTable[storage.Webhook](), Deliveries: mem.NewTable[storage.Delivery](), Idempotency: db, Tokens: db, Clock: db,
		CheckWebhookURL: func(string) error { return nil },
		ReadNode:        node.Parse, CheckNode: node.Check, ReadRuntime: node.ParseRuntimeDocument, ReadLabels: node.FromLabels,
	})
	if err != nil {
		log.Fatal(err)
	}
	s := httptest.NewServer(handler)
	return s.URL, parts, s.Close
}
