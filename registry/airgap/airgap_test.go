package airgap_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/airgap"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/gate"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// side is a registry on one side of the gap.
type side struct {
	registrytest.Registry
	blobs *mem.Blobs
	db    *mem.DB
}

func now() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func newSide(t testing.TB, keys *registrytest.Keys) *side {
	t.Helper()
	s := &side{blobs: mem.NewBlobs(), db: mem.New()}
	store := oci.New(s.open, oci.Options{})
	served, err := service.New(backend.Backend{
		Environments: registrytest.Chain(), Catalog: s.db, Records: s.db, Listing: s.db, Intents: s.db, Content: store, Mirror: store, Manifests: s.db,
		Tool: evidence.ToolIdentity{Name: "mlpromote", Version: "0.0.0"}, Now: now, Verify: keys.Verify, Sign: keys.Sign,
		RestrictionBundles: mem.NewTable[storage.RestrictionBundle](),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Registry = registrytest.Registry{Interface: served, Parts: store, Keys: keys}
	return s
}

func (s *side) open(_ context.Context, name string) (oci.Repository, error) {
	return oci.Local(s.blobs, s.db, name), nil
}

// promoted makes a release that is in prod.
func (s *side) promoted(t testing.TB) artifact.Release {
	t.Helper()
	r := s.Build(t, registrytest.Build{})
	s.Prove(t, r)
	if _, err := s.Promote(t.Context(), api.PromoteRequest{Model: r.Model}); err != nil {
		t.Fatal(err)
	}
	return r
}

// save saves a release of an environment, with what counts there and files.
func (s *side) save(t testing.TB, environment string, r artifact.Release, files ...airgap.File) []byte {
	t.Helper()
	claims, _, err := s.Claims(t.Context(), environment, r)
	if err != nil {
		t.Fatal(err)
	}
	req := airgap.Request{Registry: "local", Environment: environment, Release: r,
		Files: append(files, airgap.File{Name: "environments.yaml", Data: []byte("registry: local\n")})}
	for _, c := range claims {
		req.Evidence = append(req.Evidence, c.Bundle)
	}
	slices.Sort(req.Evidence)
	req.Evidence = slices.Compact(req.Evidence)
	var out bytes.Buffer
	if err := airgap.Save(t.Context(), s.open, req, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// trusting judges by keys, whatever bundle is in the file.
func trusting(keys *registrytest.Keys) func(context.Context, []byte) (airgap.Trusted, error) {
	return func(context.Context, []byte) (airgap.Trusted, error) { return airgap.Trusted{Verify: keys.Verify}, nil }
}

// check checks a file as one of prod.
func check(t testing.TB, keys *registrytest.Keys, file []byte) (*airgap.Checked, error) {
	t.Helper()
	return airgap.Checker{Trust: trusting(keys), Now: now, Inspect: inspect}.Check(t.Context(), bytes.NewReader(file), int64(len(file)), prod())
}

// inspect refuses pickles by their beginning. The real inspection is tested where the program is put together.
func inspect(f gate.File) error {
	head := make([]byte, 4)
	if _, err := f.Content.ReadAt(head, 0); err != nil {
		return err
	}
	if string(head) == "cos\n" {
		return registry.Errorf(registry.CodeUnsafe, "%s: its bytes are a Python pickle", f.Path)
	}
	return nil
}

func prod() airgap.Expectation { return airgap.Expectation{Registry: "local", Environment: "prod"} }

func (s *side) load(t testing.TB, c *airgap.Checked) (airgap.Loaded, error) {
	t.Helper()
	return c.Load(t.Context(), airgap.Destination{Open: s.open, First: "staging", Receiver: s})
}

// What was promoted on one side can be promoted on the other, with its evidence and by its policy.
func TestLoad(t *testing.T) {
	t.Parallel()
	keys := registrytest.NewKeys(registrytest.RoleKeys())
	sender, receiver := newSide(t, keys), newSide(t, keys)
	r := sender.promoted(t)
	file := sender.save(t, "prod", r)
	if again := sender.save(t, "prod", r); !bytes.Equal(file, again) {
		t.Error("the same release was saved as other bytes")
	}
	checked, err := check(t, keys, file)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := receiver.load(t, checked)
	if err != nil || len(loaded.NotLoaded) != 0 || loaded.Attached != 1+4*len(r.Engines) {
		t.Fatalf("loaded %+v, error %v, want signatures, provenance and reports", loaded, err)
	}
	head, err := receiver.Release(t.Context(), "staging", r.Model, "")
	if err != nil || head.Digest != r.Digest {
		t.Fatalf("staging has %s, error %v, want %s", head.Digest, err, r.Digest)
	}
	if _, err := receiver.Release(t.Context(), "prod", r.Model, ""); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("prod before the promotion: error %v, want none there", err)
	}
	if _, err := receiver.Promote(t.Context(), api.PromoteRequest{Model: r.Model}); err != nil {
		t.Errorf("promote what was loaded: %v", err)
	}
	again, err := receiver.load(t, checked)
	if err != nil || again.Attached != 0 {
		t.Errorf("loaded again: %d pieces of evidence, error %v, want none", again.Attached, err)
	}
}

// A receiver that trusts other keys takes the release, none of its evidence, and does not promote it.
func TestLoadWithoutTrust(t *testing.T) {
	t.Parallel()
	keys, others := registrytest.NewKeys(registrytest.RoleKeys()), registrytest.NewKeys(registrytest.RoleKeys())
	sender, receiver := newSide(t, keys), newSide(t, others)
	file := sender.save(t, "prod", sender.promoted(t))
	checked, err := check(t, keys, file)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := receiver.load(t, checked)
	if err != nil || loaded.Attached != 0 || len(loaded.NotLoaded) == 0 {
		t.Fatalf("loaded %+v, error %v, want no evidence", loaded, err)
	}
	if _, err := receiver.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); !registry.HasCode(err, registry.CodePolicy) {
		t.Errorf("promote: error %v, want CodePolicy", err)
	}
}

// What makes Check say no where its file is intact: each would bring in what must not be used.
func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	keys, others := registrytest.NewKeys(registrytest.RoleKeys()), registrytest.NewKeys(registrytest.RoleKeys())
	sender := newSide(t, keys)
	r := sender.promoted(t)
	file, staged := sender.save(t, "prod", r), sender.save(t, "staging", r)
	restricted := newSide(t, keys)
	quarantined := restricted.promoted(t)
	restricted.AttachTo(t, "prod", quarantined, quarantined.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "wrong answers"})
	recalled := restricted.save(t, "prod", quarantined)
	with := func(edit func(*airgap.Expectation)) airgap.Expectation {
		want := prod()
		edit(&want)
		return want
	}
	for name, c := range map[string]struct {
		file []byte
		keys *registrytest.Keys
		want airgap.Expectation
		now  time.Time
		code registry.Code
		says string
	}{
		"keys that nobody here trusts":       {file, others, prod(), now(), registry.CodeTrust, "no verification summary of a trusted promoter for oci://local/prod/vision/digits"},
		"an environment that promotes none":  {staged, keys, with(func(w *airgap.Expectation) { w.Environment = "staging" }), now(), registry.CodeTrust, "no verification summary"},
		"another environment":                {file, keys, with(func(w *airgap.Expectation) { w.Environment = "canary" }), now(), registry.CodeTrust, `the environment "prod", want "canary"`},
		"another registry of the same names": {file, keys, with(func(w *airgap.Expectation) { w.Registry = "plant" }), now(), registry.CodeTrust, `the registry "local", want "plant"`},
		"another model": {file, keys, with(func(w *airgap.Expectation) { w.Model = "vision/letters" }),
			now(), registry.CodeTrust, `the model "vision/digits", want "vision/letters"`},
		"no environment":              {file, keys, with(func(w *airgap.Expectation) { w.Environment = "" }), now(), registry.CodeInvalid, "want the environment"},
		"a release that was recalled": {recalled, keys, prod(), now(), registry.CodePolicy, "wrong answers"},
		"an old file": {file, keys, with(func(w *airgap.Expectation) { w.MaxAge = time.Hour }),
			now().Add(2 * time.Hour), registry.CodeTrust, "2h0m0s ago, want at most 1h0m0s"},
		"a file from the future": {file, keys, prod(), now().Add(-48 * time.Hour), registry.CodeTrust, "look at the clocks"},
	} {
		checker := airgap.Checker{Trust: trusting(c.keys), Now: func() time.Time { return c.now }, Inspect: inspect}
		_, err := checker.Check(t.Context(), bytes.NewReader(c.file), int64(len(c.file)), c.want)
		if !registry.HasCode(err, c.code) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %s that says %q", name, err, c.code, c.says)
		}
	}
	if _, err := (airgap.Checker{Now: now}).Check(t.Context(), bytes.NewReader(file),
		int64(len(file)), prod()); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("without keys: error %v, want CodeInvalid", err)
	}
}

// A restriction of an engine's toolchain counts, in the file and from elsewhere; a list that is not by a
// trusted approver, or is older, is refused.
func TestRestrictions(t *testing.T) {
	t.Parallel()
	keys := registrytest.NewKeys(append(registrytest.RoleKeys(), trust.TrustEntry{
		Key: "thief", Roles: []evidence.Role{evidence.RoleApprover}, Resources: []string{"oci://local/"}, State: evidence.KeyRevoked}))
	sender := newSide(t, keys)
	r := sender.promoted(t)
	plain := sender.save(t, "prod", r)
	list := func(key string, counter int64, environment string, entries ...evidence.Restriction) []byte {
		l := evidence.RestrictionList{ResourceURI: environment, Counter: counter, IssuedOn: now(), Reason: "wrong results", Entries: entries}
		if counter > 1 {
			l.Previous = digest.FromString("before")
		}
		return sender.Bundle(t, key, evidence.PredicateRestrictions, l, digest.FromString(environment))
	}
	const environment = "oci://local/prod/"
	recalled := evidence.Restriction{Kind: evidence.RestrictToolchain, Toolchain: "onnxruntime",
		Versions: ">=1.0", Reason: "wrong results", By: "approver", IssuedOn: now()}
	with := func(bundle []byte) []byte {
		return sender.save(t, "prod", r, airgap.File{Name: airgap.RestrictionsFile, Data: bundle})
	}
	for name, c := range map[string]struct {
		file, given []byte
		code        registry.Code // empty: it passes
		says        string
	}{
		"none":                         {plain, nil, "", ""},
		"an empty list":                {with(list("approver", 2, environment)), nil, "", ""},
		"in the file":                  {with(list("approver", 1, environment, recalled)), nil, registry.CodePolicy, "wrong results"},
		"from elsewhere":               {plain, list("approver", 1, environment, recalled), registry.CodePolicy, "wrong results"},
		"lifted since":                 {with(list("approver", 1, environment, recalled)), list("approver", 2, environment), "", ""},
		"an older one from elsewhere":  {with(list("approver", 2, environment)), list("approver", 1, environment), registry.CodeTrust, "is older than list 2"},
		"by a builder":                 {with(list("builder", 1, environment, recalled)), nil, registry.CodeTrust, "restriction list"},
		"by a stranger":                {plain, list(registrytest.Stranger, 1, environment), registry.CodeTrust, "restriction list"},
		"of another environment":       {plain, list("approver", 1, "oci://local/staging/"), registry.CodeTrust, "restriction list"},
		"lifted by a revoked key":      {with(list("approver", 1, environment, recalled)), list("thief", 1000000, environment), registry.CodeTrust, "what it lifted is unknown"},
		"saved by a revoked key":       {with(list("thief", 2, environment)), nil, registry.CodeTrust, "what it lifted is unknown"},
		"the first, by a revoked key":  {plain, list("thief", 1, environment, recalled), registry.CodePolicy, "wrong results"},
		"something that is not a list": {with([]byte("{}")), nil, registry.CodeTrust, "restriction list"},
	} {
		want := prod()
		want.Restrictions = c.given
		_, err := airgap.Checker{Trust: trusting(keys), Now: now, Inspect: inspect}.Check(t.Context(), bytes.NewReader(c.file), int64(len(c.file)), want)
		if c.code == "" && err != nil || c.code != "" && (!registry.HasCode(err, c.code) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error %v, want %q that says %q", name, err, c.code, c.says)
		}
	}
}

// A list that the receiving side knows counts if it is newer than the one in the file, and an older one takes nothing back.
// Its trust is asked with the bundle in the file, and its refusal is final.
func TestTrustOfReceiver(t *testing.T) {
	t.Parallel()
	keys := registrytest.NewKeys(registrytest.RoleKeys())
	sender := newSide(t, keys)
	r := sender.promoted(t)
	const environment = "oci://local/prod/"
	recalled := evidence.Restriction{Kind: evidence.RestrictToolchain, Toolchain: "onnxruntime",
		Versions: ">=1.0", Reason: "wrong results", By: "approver", IssuedOn: now()}
	list := func(counter int64, entries ...evidence.Restriction) []byte {
		l := evidence.RestrictionList{ResourceURI: environment, Counter: counter, IssuedOn: now(), Reason: "wrong results", Entries: entries}
		if counter > 1 {
			l.Previous = digest.FromString("before")
		}
		return sender.Bundle(t, "approver", evidence.PredicateRestrictions, l, digest.FromString(environment))
	}
	file := func(files ...airgap.File) []byte { return sender.save(t, "prod", r, files...) }
	lifted := airgap.File{Name: airgap.RestrictionsFile, Data: list(2)}
	bundle := airgap.File{Name: airgap.TrustBundleFile, Data: []byte("a bundle")}
	for name, c := range map[string]struct {
		file, known []byte
		refuses     bool
		code        registry.Code // empty: it passes
	}{
		"nothing known":                  {file(bundle), nil, false, ""},
		"a restriction is known":         {file(bundle), list(1, recalled), false, registry.CodePolicy},
		"one that the file lifts":        {file(bundle, lifted), list(1, recalled), false, ""},
		"one that is newer than a lift":  {file(bundle, lifted), list(3, recalled), false, registry.CodePolicy},
		"the bundle does not count":      {file(bundle), nil, true, registry.CodeTrust},
		"a list that is known is broken": {file(bundle), []byte("{}"), false, registry.CodeTrust},
	} {
		asked := ""
		trust := func(_ context.Context, bundle []byte) (airgap.Trusted, error) {
			asked = string(bundle)
			if c.refuses {
				return airgap.Trusted{}, registry.Errorf(registry.CodeTrust, "it has expired")
			}
			return airgap.Trusted{Verify: keys.Verify, Known: func(string) []byte { return c.known }}, nil
		}
		_, err := airgap.Checker{Trust: trust, Now: now, Inspect: inspect}.Check(t.Context(), bytes.NewReader(c.file), int64(len(c.file)), prod())
		if c.code == "" && err != nil || c.code != "" && !registry.HasCode(err, c.code) || asked != "a bundle" {
			t.Errorf("%s: error %v, want %q; its trust was asked with %q", name, err, c.code, asked)
		}
	}
}

// A release with code in it is refused, whoever signed and promoted it.
func TestCheckLooksAtBytes(t *testing.T) {
	t.Parallel()
	keys := registrytest.NewKeys(registrytest.RoleKeys())
	sender := newSide(t, keys)
	r := sender.Build(t, registrytest.Build{})
	put := func(p storage.Part, name, content string) storage.PartRef {
		p.Files = []storage.PartFile{{File: artifact.File{Path: name, Digest: digest.FromString(content), Size: int64(len(content))},
			Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}}
		ref, err := sender.Parts.PutPart(t.Context(), "staging/"+r.Model, p)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	bent, err := sender.Parts.Assemble(t.Context(), "staging/"+r.Model, storage.Assembly{Model: r.Model, Version: "2.0.0", Revision: 1,
		Sources: r.Sources, Plan: r.Plan, Parts: []storage.PartRef{
			put(storage.Part{Role: artifact.PartEngine, Model: r.Model, Format: "onnx", Engine: r.Engines[0]}, "model.onnx", "cos\nsystem\n(S'true'\ntR."),
			put(storage.Part{Role: artifact.PartLimits}, "limits.json", `{"v":1}`),
			put(storage.Part{Role: artifact.PartInterface}, "interface.json", `{"v":1}`),
		}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sender.Publish(t.Context(), api.Publication{Model: r.Model, Release: bent}); err != nil {
		t.Fatal(err)
	}
	bad, err := sender.Release(t.Context(), "staging", r.Model, "")
	if err != nil {
		t.Fatal(err)
	}
	sender.Prove(t, bad)
	if _, err := sender.Promote(t.Context(), api.PromoteRequest{Model: r.Model}); err != nil {
		t.Fatal(err)
	}
	if _, err := check(t, keys, sender.save(t, "prod", bad)); !registry.HasCode(err, registry.CodeUnsafe) ||
		!strings.Contains(err.Error(), "model.onnx: its bytes are a Python pickle") {
		t.Errorf("error %v, want CodeUnsafe that names the file", err)
	}
}

// Every byte of a file counts: with any of them changed, nothing passes, and the message says where.
func TestCheckRefusesEveryChange(t *testing.T) {
	t.Parallel()
	keys := registrytest.NewKeys(registrytest.RoleKeys())
	sender := newSide(t, keys)
	file := sender.save(t, "prod", sender.promoted(t))
	for at := 0; at < len(file); at += 97 {
		changed := slices.Clone(file)
		changed[at] ^= 1
		if _, err := check(t, keys, changed); !registry.HasCode(err, registry.CodeTrust) && !registry.HasCode(err, registry.CodeDigest) {
			t.Fatalf("byte %d of %d changed: error %v, want CodeTrust or CodeDigest", at, len(file), err)
		}
	}
	for _, size := range []int{0, 1, 511, 512, 1024, len(file) / 2, len(file) - 1024, len(file) - 512, len(file) - 1} {
		if _, err := check(t, keys, file[:size]); !registry.HasCode(err, registry.CodeTrust) {
			t.Errorf("cut to %d bytes: error %v, want CodeTrust", size, err)
		}
	}
}

// An interrupted load leaves no head, and the next one finishes it.
func TestLoadInterrupted(t *testing.T) {
	t.Parallel()
	keys := registrytest.NewKeys(registrytest.RoleKeys())
	sender := newSide(t, keys)
	r := sender.promoted(t)
	checked, err := check(t, keys, sender.save(t, "prod", r))
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("the disk is full")
	for fails := range 3 + 3*len(r.Engines) {
		receiver := newSide(t, keys)
		_, err := checked.Load(t.Context(), airgap.Destination{Open: receiver.open, First: "staging", Receiver: &failing{receiver, fails, full}})
		if fails < 2+3*len(r.Engines) {
			if !errors.Is(err, full) {
				t.Fatalf("step %d fails: error %v, want that of the disk", fails, err)
			}
			if _, err := receiver.Release(t.Context(), "staging", r.Model, ""); !registry.HasCode(err, registry.CodeNotFound) {
				t.Errorf("step %d failed: staging has a head (error %v)", fails, err)
			}
		}
		if _, err := receiver.load(t, checked); err != nil {
			t.Errorf("again after step %d failed: %v", fails, err)
		}
	}
}

// failing is a side whose n-th write fails.
type failing struct {
	*side
	left int
	err  error
}

func (f *failing) step() error {
	f.left--
	if f.left < 0 && f.left > -2 {
		return fmt.Errorf("write: %w", f.err)
	}
	return nil
}

func (f *failing) Attach(ctx context.Context, a api.Attachment) (registry.Digest, error) {
	if err := f.step(); err != nil {
		return "", err
	}
	return f.side.Attach(ctx, a)
}

func (f *failing) Publish(ctx context.Context, p api.Publication) (history.Head, error) {
	if err := f.step(); err != nil {
		return history.Head{}, err
	}
	return f.side.Publish(ctx, p)
}
