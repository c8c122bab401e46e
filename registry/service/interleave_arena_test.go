package service_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/composed"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// arena is a registry in memory on which operations are interleaved, each by a service of its
// own, as by replicas.
type arena struct {
	environments policy.Environments
	keys         *registrytest.Keys
	known        *known
	names        *names

	db       *mem.DB
	blobs    *mem.Blobs
	far      *mem.DB // names and bytes of another registry, for environments that are there
	farBlobs *mem.Blobs
	now      time.Time
	permits  int
	late     bool       // the storage may carry out a deletion again while its permit lasts
	deleted  []deletion // what it may carry out again
	fine     bool       // calls of the storage are steps; else those of releases and evidence as a whole

	strands []*strand
	parked  chan *strand
	alive   sync.WaitGroup
	clock   int // steps that were made

	schedule []string // the same, for people
}

// names is what people call the things of an arena.
type names struct {
	versions map[registry.Digest]string
	releases map[string]artifact.Release // by version
	facts    map[string]fact             // evidence that operations attach, by name
	bundles  map[registry.Digest]string  // the manifests of facts, when they are attached
}

// newArena is an arena over a chain of environments, one of which may be elsewhere.
func newArena(elsewhere string, chain ...string) *arena {
	a := &arena{
		db: mem.New(), blobs: mem.NewBlobs(), far: mem.New(), farBlobs: mem.NewBlobs(), known: newKnown(),
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), environments: registrytest.Chain(),
		names: &names{make(map[registry.Digest]string), make(map[string]artifact.Release), make(map[string]fact), make(map[registry.Digest]string)},
	}
	a.environments.List = nil
	for i, name := range chain {
		e := policy.Environment{Name: name}
		if i > 0 {
			e.From, e.Require = chain[i-1], []string{policy.RequireSignature, policy.RequireParity}
		}
		if name == elsewhere {
			e.Registry = host
		}
		a.environments.List = append(a.environments.List, e)
	}
	a.keys = registrytest.NewKeys(a.environments.Trust)
	a.db.Now = func() time.Time { return a.now }
	return a
}

// chain is the names of the environments.
func (a *arena) chain() []string {
	var names []string
	for _, e := range a.environments.List {
		names = append(names, e.Name)
	}
	return names
}

// copy is another arena in the same state, in which nothing is at work.
func (a *arena) copy() *arena {
	c := &arena{
		environments: a.environments, keys: a.keys, known: a.known, names: a.names, now: a.now, fine: a.fine, late: a.late,
		db: a.db.Clone(), blobs: a.blobs.Clone(), far: a.far.Clone(), farBlobs: a.farBlobs.Clone(), parked: make(chan *strand),
	}
	c.db.Now = func() time.Time { return c.now }
	return c
}

// isFar reports whether a repository is in the other registry.
func (a *arena) isFar(repository string) bool {
	environment, _, _ := strings.Cut(repository, "/")
	e, err := a.environments.Find(environment)
	return err == nil && e.External()
}

// bytes is what can be read, also by a recipe.
func (a *arena) bytes() storage.Blobs {
	return composed.Blobs(tracedBlobs{a.blobs}, tracedGarbage{a.db, a}, 0)
}

// store is content as a replica sees it.
func (a *arena) store() *oci.Store {
	blobs, refs := a.bytes(), tracedRefs{a.db}
	safe := gc.SafeStore{Garbage: tracedGarbage{a.db, a}, Remover: tracedRemover{a.blobs, a}}
	return oci.New(func(_ context.Context, name string) (oci.Repository, error) {
		if a.isFar(name) {
			return oci.Local(tracedBlobs{a.farBlobs}, tracedRefs{a.far}, name), nil
		}
		return oci.Local(safe.Blobs(blobs), safe.Refs(refs, blobs), name), nil
	}, oci.Options{})
}

// replica is a service with a clock of its own, which runs a little after those of others.
func (a *arena) replica(t testing.TB, id int) *service.Service {
	t.Helper()
	store, now := a.store(), a.now.Add(time.Duration(id)*time.Millisecond)
	config := backend.Backend{
		Environments: a.environments, Catalog: tracedCatalog{a.db}, Records: tracedCatalog{a.db}, Listing: a.db, Intents: tracedCatalog{a.db},
		Inspect: func(context.Context, policy.Located) error { return nil },
		Content: tracedContent{store, a}, Mirror: tracedMirror{store}, Verify: a.known.verify(a.keys.Verify), Sign: a.keys.Sign,
		Tool: evidence.ToolIdentity{Name: "mlpromote", Version: fmt.Sprint("0.0.", id)},
		Now:  func() time.Time { now = now.Add(time.Second); return now },
	}
	if a.fine {
		config.Content, config.Mirror = store, store
	}
	s, err := service.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tomorrow lets the clock of the catalog go on by more than a grace.
func (a *arena) tomorrow() { a.now = a.now.Add(25 * time.Hour) }

// collector collects what nothing needs.
func (a *arena) collector(t testing.TB) *gc.Collector {
	t.Helper()
	garbage := tracedGarbage{a.db, a}
	c, err := gc.New(gc.Config{
		Environments: a.environments, Store: garbage, Catalog: tracedCatalog{a.db}, Intents: tracedCatalog{a.db}, Blobs: tracedBlobs{a.blobs},
		Remover: tracedRemover{a.blobs, a}, Garbage: garbage, Clock: garbage, Owner: registrytest.Owned{}, Lock: registrytest.Owned{},
		Retention: gc.Retention{Grace: 24 * time.Hour, Heads: 10},
		Surplus:   composed.NewComposer(tracedManifests{a.db}, tracedBlobs{a.blobs}, garbage, 0).Surplus,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// build makes a proven release and publishes it.
func (a *arena) build(t testing.TB, version string) artifact.Release {
	t.Helper()
	store := a.store()
	on := registrytest.Registry{Interface: a.replica(t, 0), Parts: store, Keys: a.keys}
	r := on.Build(t, registrytest.Build{Version: version, Salt: version, Engines: []artifact.Engine{registrytest.MakeEngine("v3", "int8")}})
	e := r.Engines[0]
	for _, subject := range r.Subjects() {
		on.AttachTo(t, "staging", r, subject.Digest, evidence.PredicateSign, struct{}{})
	}
	on.AttachTo(t, "staging", r, e.Digest, evidence.PredicateParity, registrytest.Report(r, e, evidence.VerdictPass))
	a.names.versions[r.Digest], a.names.releases[version] = version, r
	return r
}

// sign makes a statement about a release, to be attached by operations of that name.
func (a *arena) sign(t testing.TB, name string, f fact) {
	t.Helper()
	r := a.names.releases[f.version]
	on := registrytest.Registry{Interface: a.replica(t, 0), Keys: a.keys}
	key, subject, kind := "approver", r.Digest, evidence.PredicateQuarantine
	var predicate any = evidence.Quarantine{Reason: name, IssuedOn: a.now}
	switch f.kind {
	case factLift:
		predicate = evidence.Quarantine{Reason: name, IssuedOn: a.now, Lifts: []registry.Digest{a.names.facts[f.ends].bundle}}
	case factFail:
		key, subject, kind = "verifier", r.Engines[0].Digest, evidence.PredicateParity
		predicate = registrytest.Report(r, r.Engines[0], evidence.VerdictFail)
	case factPass:
		key, subject, kind = "verifier", r.Engines[0].Digest, evidence.PredicateParity
		predicate = on.Seeing(t, registrytest.Report(r, r.Engines[0], evidence.VerdictPass))
	}
	f.subject, f.signed = subject, on.Bundle(t, key, kind, predicate, subject)
	f.bundle = a.manifestOf(t, f)
	a.names.facts[name], a.names.bundles[f.bundle] = f, name
}

// manifestOf gives the digest that evidence has wherever it is attached.
func (a *arena) manifestOf(t testing.TB, f fact) registry.Digest {
	t.Helper()
	elsewhere := a.copy()
	d, err := elsewhere.replica(t, 0).Attach(t.Context(), api.Attachment{
		Environment: "staging", Model: registrytest.Model, Release: a.names.releases[f.version].Digest, Subject: f.subject, Bundle: f.signed})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
