package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/operating"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/serving"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// benchBytes is the size of the engine that is promoted; MLPROMOTE_LARGE makes it 1 GiB.
const benchBytes = 64 << 20

// shop is a data directory with a model whose releases policy lets into prod.
type shop struct {
	*wiring.Instance
	app   *program.App
	model string
	file  string
	bytes int64 // of the file
	// fileDigest is the digest of the file.
	fileDigest registry.Digest
	parts      []storage.PartRef
	engine     artifact.Engine
	sources    registry.Digest
	version    int
}

// newShop makes one whose engines have so many bytes.
func newShop(b testing.TB, bytes int64) *shop {
	b.Helper()
	return newShopIn(b, "", bytes)
}

// newShopIn makes one with its content in a bucket, or in a directory if bucket is empty.
func newShopIn(b testing.TB, bucket string, bytes int64) *shop {
	b.Helper()
	dir := b.TempDir()
	a := &program.App{UI: ui.New("mlpromote", os.Stdout, os.Stderr, func(string) string { return "" }),
		Getenv: func(string) string { return "" }, Version: "bench", Flags: connect.Flags{Data: filepath.Join(dir, "data")}, Storage: bucket}
	a.UI.Stderr = io.Discard
	check(b, a.At().Create())
	i, err := a.At().OpenDirectory(b.Context())
	check(b, err)
	b.Cleanup(func() { _ = i.Close() })
	s := &shop{Instance: i, app: a, model: "bench/model", file: filepath.Join(dir, "model.onnx"), bytes: bytes}
	f, err := os.Create(s.file)
	check(b, err)
	_, err = io.CopyN(f, rand.Reader, bytes)
	check(b, err)
	check(b, f.Close())
	s.stock(b)
	return s
}

// largeShop is one whose engines take time to read.
func largeShop(b *testing.B) *shop {
	b.Helper()
	if os.Getenv("MLPROMOTE_LARGE") != "" {
		return newShop(b, 1<<30)
	}
	return newShop(b, benchBytes)
}

// another is another model in the same data directory.
func (s *shop) another(b *testing.B, model string) *shop {
	b.Helper()
	other := *s
	other.model, other.version = model, 0
	other.stock(b)
	return &other
}

// promote brings the next version into prod.
func (s *shop) promote(b *testing.B) artifact.Release {
	b.Helper()
	r := s.release(b)
	_, err := s.Promote(b.Context(), api.PromoteRequest{Model: s.model})
	check(b, err)
	return r
}

func check(b testing.TB, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// stock stores what every release of the model shares.
func (s *shop) stock(b testing.TB) {
	b.Helper()
	repository := "staging/" + s.model
	document := func(repository string, role artifact.PartKind) storage.PartRef {
		text := []byte("{}")
		ref, err := s.Store.PutPart(b.Context(), repository, storage.Part{Role: role, Model: s.model, Format: "onnx",
			Engine: artifact.Engine{Variant: "reference", Precision: "fp32"},
			Files: []storage.PartFile{{File: artifact.File{Path: string(role) + ".json", Digest: digest.FromBytes(text), Size: 2},
				Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }}}})
		check(b, err)
		return ref
	}
	reference := document(repository+"/sources", artifact.PartReference)
	var err error
	s.sources, err = s.Store.Assemble(b.Context(), repository+"/sources", storage.Assembly{Model: s.model, Parts: []storage.PartRef{reference}})
	check(b, err)
	limits, iface := document(repository, artifact.PartLimits), document(repository, artifact.PartInterface)
	f, err := os.Open(s.file)
	check(b, err)
	d, err := digest.FromReader(f)
	check(b, err)
	check(b, f.Close())
	s.fileDigest = d
	s.engine = artifact.Engine{
		Target:    artifact.Target{V: 1, Name: "linux-amd64-v1", OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64", Level: "v1"}},
		Toolchain: artifact.Toolchain{Name: "onnxruntime", Version: "1.30.0"}, Variant: "fp32", Precision: "fp32",
		Reference: reference.Digest, Sources: s.sources, Limits: limits.Digest, Interface: iface.Digest,
	}
	engine, err := s.Store.PutPart(b.Context(), repository, storage.Part{Role: artifact.PartEngine, Engine: s.engine, Model: s.model, Format: "onnx",
		Files: []storage.PartFile{{File: artifact.File{Path: "model.onnx", Digest: d, Size: s.bytes}, Open: func() (io.ReadCloser, error) { return os.Open(s.file) }}}})
	check(b, err)
	s.engine.Digest = engine.Digest
	s.parts = []storage.PartRef{limits, iface, engine}
}

// release makes the next version, and all the evidence that policy asks for.
func (s *shop) release(b *testing.B) artifact.Release {
	b.Helper()
	s.version++
	d, err := s.Store.Assemble(b.Context(), "staging/"+s.model, storage.Assembly{
		Model: s.model, Version: fmt.Sprintf("1.0.%d", s.version), Revision: 1, Sources: s.sources, Plan: s.sources, Parts: s.parts})
	check(b, err)
	s.sign(b, evidence.RoleBuilder, evidence.PredicateSign, d, d, struct{}{})
	if s.version == 1 {
		node := artifact.Node{V: 1, OS: "linux", CPU: artifact.NodeCPU{Arch: "amd64", Level: "v1"}, Runtimes: map[string]string{"onnxruntime": "1.30.0"}}
		s.sign(b, evidence.RoleBuilder, evidence.PredicateSign, d, s.engine.Digest, struct{}{})
		s.sign(b, evidence.RoleBuilder, evidence.PredicateProvenance, d, s.engine.Digest, struct{}{})
		s.sign(b, evidence.RoleVerifier, evidence.PredicateParity, d, s.engine.Digest, evidence.ParityReport{
			ReportHead: evidence.ReportHead{Verdict: evidence.VerdictPass, FinishedOn: time.Unix(1, 0).UTC(), Node: node,
				Limits: evidence.NewDigestSet(s.engine.Limits), Sources: evidence.NewDigestSet(s.sources), Reference: evidence.NewDigestSet(s.engine.Reference),
				Runtime: evidence.RuntimeUsed{Name: "onnxruntime", Version: "1.30.0"}},
			Cases: evidence.CasesRun{Count: 1, Ran: 1, Origin: artifact.OriginRecorded}, Rules: evidence.ReportRules})
	}
	_, err = s.Publish(b.Context(), api.Publication{Model: s.model, Release: d})
	check(b, err)
	r, err := s.Release(b.Context(), "staging", s.model, string(d))
	check(b, err)
	return r
}

func (s *shop) sign(b *testing.B, role evidence.Role, predicateType string, release, subject registry.Digest, predicate any) {
	b.Helper()
	statement, err := evidence.NewStatement(predicateType, predicate, evidence.StatementSubject{Digest: evidence.NewDigestSet(subject)})
	check(b, err)
	bundle, err := s.Keys.Sign(b.Context(), role, statement)
	check(b, err)
	_, err = s.Attach(b.Context(), api.Attachment{Environment: "staging", Model: s.model, Release: release, Subject: subject, Bundle: bundle})
	check(b, err)
}

// BenchmarkPromote times a promotion within one store: the re-hash against a bare
// sha256 of the same file, and all the rest, which moves no bytes.
func BenchmarkPromote(b *testing.B) {
	s := largeShop(b)
	var promote, rehash, bare time.Duration
	for b.Loop() {
		r := s.release(b)
		began := time.Now()
		hashFile(b, s.file)
		bare += time.Since(began)
		began = time.Now()
		check(b, s.Store.Rehash(b.Context(), "staging/"+s.model, r))
		rehash += time.Since(began)
		began = time.Now()
		_, err := s.Promote(b.Context(), api.PromoteRequest{Model: s.model, Ref: string(r.Digest)})
		check(b, err)
		promote += time.Since(began)
	}
	b.ReportMetric(float64(rehash)/float64(bare), "rehash/sha256")
	b.ReportMetric(float64(promote-rehash)/float64(b.N)/1e6, "rest-ms/op")
}

func hashFile(b *testing.B, path string) {
	b.Helper()
	f, err := os.Open(path)
	check(b, err)
	defer f.Close()
	_, err = io.Copy(sha256.New(), f)
	check(b, err)
}

// serve gives the URLs of the service, all of it but the socket, and of a chi handler that
// does nothing.
func (s *shop) serve(b testing.TB) (service, empty string) {
	b.Helper()
	config := defaultServe(b, s.app)
	logger, err := serving.NewLogger(s.app.UI, config.LogFormat, config.LogLevel)
	check(b, err)
	svc, err := serving.New(b.Context(), s.app.At(), config, logger)
	check(b, err)
	sv, err := serving.Open(b.Context(), s.app.At(), svc)
	check(b, err)
	b.Cleanup(func() { _ = sv.Here.DB.Close() })
	server, err := sv.Server(b.Context())
	check(b, err)
	ours := httptest.NewServer(server.Handler)
	b.Cleanup(ours.Close)
	router := chi.NewRouter()
	router.Get("/*", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	nothing := httptest.NewServer(router)
	b.Cleanup(nothing.Close)
	return ours.URL, nothing.URL
}

// benchModels is how many models are asked for, each as often as the others.
const benchModels = 100

// BenchmarkCrowd asks for engines of a protected environment and for manifests by tag, in a
// catalog of 10,000 engines, and in turn a chi handler that does nothing: from 64
// connections at once, and from one.
func BenchmarkCrowd(b *testing.B) {
	s := newShop(b, 1<<10)
	var resolve, manifests []string
	for n := range benchModels {
		model := s.another(b, fmt.Sprintf("bench/model-%d", n))
		r := model.promote(b)
		resolve = append(resolve, "/api/v1/models/"+model.model+"/resolve?environment=prod&arch=amd64&level=v1")
		manifests = append(manifests, "/v2/prod/"+model.model+"/manifests/"+r.Tag())
	}
	s.crowd(b, 10_000-benchModels)
	service, empty := s.serve(b)
	for _, connections := range []int{64, 1} {
		for what, paths := range map[string][]string{"resolve": resolve, "manifest": manifests} {
			b.Run(fmt.Sprintf("%s/connections=%d", what, connections), func(b *testing.B) {
				inTurn(b, newCallers(service, paths, connections), newCallers(empty, paths, connections))
			})
		}
	}
}

// inTurn has both ask, and compares.
func inTurn(b *testing.B, ours, nothing *callers) {
	b.Helper()
	turns := []*callers{ours, nothing}
	for _, c := range turns {
		c.ask(b) // connections are opened, and every model is remembered
		c.took, c.spent = nil, 0
	}
	for b.Loop() {
		turns[0], turns[1] = turns[1], turns[0]
		for _, c := range turns {
			c.ask(b)
		}
	}
	b.ReportMetric(ours.rate(), "requests/s")
	b.ReportMetric(ours.rate()/nothing.rate(), "of-empty-handler")
	b.ReportMetric(ours.percentile(0.99), "p99-us")
	b.ReportMetric(nothing.percentile(0.99), "empty-p99-us")
}

// callers ask for paths of one server over connections that they keep.
type callers struct {
	client      *http.Client
	url         string
	paths       []string
	connections int

	mu    sync.Mutex
	took  []time.Duration
	spent time.Duration // with all of them at work
}

func newCallers(url string, paths []string, connections int) *callers {
	return &callers{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}, url: url, paths: paths, connections: connections}
}

// ask asks for every path, some times.
func (c *callers) ask(b *testing.B) {
	b.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range c.connections {
		all.Go(func() {
			var took []time.Duration
			for n := next.Add(1); n <= int64(10*len(c.paths)); n = next.Add(1) {
				took = append(took, get(b, c.client, c.url+c.paths[n%int64(len(c.paths))]))
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.took = append(c.took, took...)
		})
	}
	all.Wait()
	c.spent += time.Since(began)
}

// rate is in requests per second.
func (c *callers) rate() float64 { return float64(len(c.took)) / c.spent.Seconds() }

// percentile is in microseconds.
func (c *callers) percentile(p float64) float64 {
	slices.Sort(c.took)
	return float64(c.took[int(p*float64(len(c.took)-1))].Microseconds())
}

// crowd fills the catalog with so many engines of other models, three to a release.
func (s *shop) crowd(b *testing.B, engines int) {
	b.Helper()
	db := s.Local.DB
	for n := range engines {
		model, d := fmt.Sprintf("crowd/%d", n/3), digest.FromString(fmt.Sprint("crowd ", n))
		check(b, db.PutManifest(b.Context(), "prod/"+model, storage.Manifest{Digest: d, Size: 1, MediaType: "application/vnd.oci.image.manifest.v1+json"}))
		if n%3 == 0 {
			_, err := db.Apply(b.Context(), storage.Change{DecisionBasis: registrytest.HeadAlone("prod", model, ""),
				Move: &storage.HeadMove{}, Event: history.Event{
					Time: time.Now(), Kind: history.EventPromote, Environment: "prod", Model: model, Version: "1.0.0", Release: d}})
			check(b, err)
		}
	}
}

func get(b *testing.B, client *http.Client, url string) time.Duration {
	b.Helper()
	began := time.Now()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	check(b, err)
	response, err := client.Do(request)
	check(b, err)
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		b.Fatalf("%s: %s %v", url, response.Status, err)
	}
	return time.Since(began)
}

// defaultServe is a service as it is when nobody sets anything.
func defaultServe(b testing.TB, a *program.App) serving.Config {
	b.Helper()
	var config serving.Config
	data := a.Data
	for _, s := range operating.Settings(a, &config) {
		check(b, s.Set(s.Fallback))
	}
	a.Data = data
	return config
}
