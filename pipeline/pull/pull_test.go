package pull_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/pull"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/validators/format"
)

// world is a registry in memory, and a machine that pulls from it.
type world struct {
	registrytest.Registry
	pull.Puller
	dir string // where it pulls to; not there yet
}

func setup(t *testing.T) *world {
	t.Helper()
	db, blobs := mem.New(), mem.NewBlobs()
	content := oci.New(func(_ context.Context, name string) (oci.Repository, error) { return oci.Local(blobs, db, name), nil }, oci.Options{})
	keys := registrytest.NewKeys(registrytest.RoleKeys())
	svc, err := service.New(backend.Backend{
		RestrictionBundles: mem.NewTable[storage.RestrictionBundle](),
		Environments:       registrytest.Chain(), Catalog: db, Records: db, Listing: db, Intents: db, Content: content, Verify: keys.Verify, Sign: keys.Sign,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &world{
		Registry: registrytest.Registry{Interface: svc, Parts: content, Keys: keys},
		Puller: pull.Puller{
			Checker:  pull.Checker{Verify: keys.Verify, ReadPart: oci.ReadPart},
			Registry: svc, Parts: content, Evidence: content, Inspect: format.CheckPart,
		},
		dir: filepath.Join(t.TempDir(), "engine"),
	}
}

// query asks for the engine of a machine with every processor level.
func query(environment string) api.ResolveQuery {
	return api.ResolveQuery{Environment: environment, Model: registrytest.Model, Node: registrytest.Node("v4")}
}

// pulled pulls from prod, where a release was promoted to.
func pulled(t *testing.T) (*world, pull.Result) {
	t.Helper()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	result, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{})
	if err != nil {
		t.Fatal(err)
	}
	return w, result
}

// A pulled folder has the files of the engine, and proves by itself who built and promoted it.
func TestPull(t *testing.T) {
	t.Parallel()
	w, result := pulled(t)
	if result.Dir != w.dir || result.Record.Version != "1.0.0" || result.Record.Label != result.Resolution.Engine.Label() || len(result.Files) == 0 {
		t.Errorf("result %+v, want the engine of 1.0.0 in %s", result, w.dir)
	}
	for _, name := range result.Files {
		if info, err := os.Stat(filepath.Join(w.dir, name)); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: %v, want a file", name, err)
		}
	}
	proof, err := w.Check(t.Context(), w.dir, pull.Expectation{Registry: "local", Environment: "prod", Model: registrytest.Model, Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	if proof.Builder == "" || proof.Promoter == "" || proof.Promoted.IsZero() || proof.Record.Version != "1.0.0" || len(proof.Claims) == 0 {
		t.Errorf("proof %+v, want builder, promoter, time, version and claims", proof)
	}
	if len(proof.Files) != len(result.Files) {
		t.Errorf("the proof is of the files %v, want %v", proof.Files, result.Files)
	}
	left, err := os.ReadDir(filepath.Dir(w.dir))
	if err != nil || len(left) != 1 {
		t.Errorf("%v beside the folder, error %v; want nothing", left, err)
	}
}

// edit changes the record of a pulled folder, which is not signed.
func (w *world) edit(t *testing.T, change func(*pull.Record)) {
	t.Helper()
	path := filepath.Join(w.dir, pull.Dir, "pull.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var record pull.Record
	if err := json.Unmarshal(data, &record); err != nil {
		t.Fatal(err)
	}
	change(&record)
	if data, err = json.Marshal(record); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// at is a path in the pulled folder.
func (w *world) at(parts ...string) string {
	return filepath.Join(append([]string{w.dir}, parts...)...)
}

// A folder that is not what was pulled is refused, and so is one whose record says what its evidence does not.
func TestCheckOfAChangedFolder(t *testing.T) {
	t.Parallel()
	remove := func(parts ...string) func(*world, *testing.T, pull.Result) {
		return func(w *world, t *testing.T, _ pull.Result) {
			if err := os.RemoveAll(w.at(parts...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(text string, parts ...string) func(*world, *testing.T, pull.Result) {
		return func(w *world, t *testing.T, _ pull.Result) {
			if err := os.WriteFile(w.at(parts...), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	record := func(change func(*pull.Record)) func(*world, *testing.T, pull.Result) {
		return func(w *world, t *testing.T, _ pull.Result) { w.edit(t, change) }
	}
	for name, c := range map[string]struct {
		change func(*world, *testing.T, pull.Result)
		code   registry.Code
		want   string
	}{
		"a changed file": {func(w *world, t *testing.T, r pull.Result) { write("changed", r.Files[0])(w, t, r) }, registry.CodeDigest, "differs from the pulled one"},
		"a missing file": {func(w *world, t *testing.T, r pull.Result) { remove(r.Files[0])(w, t, r) }, registry.CodeDigest, "is missing"},
		"a link in place of a file": {func(w *world, t *testing.T, r pull.Result) {
			remove(r.Files[0])(w, t, r)
			if err := os.Symlink("/etc/hostname", w.at(r.Files[0])); err != nil {
				t.Fatal(err)
			}
		}, registry.CodeTrust, "is neither a file nor a folder"},
		"a folder in place of a file": {func(w *world, t *testing.T, r pull.Result) {
			remove(r.Files[0])(w, t, r)
			if err := os.Mkdir(w.at(r.Files[0]), 0o700); err != nil {
				t.Fatal(err)
			}
		}, registry.CodeTrust, "is not part of the pulled engine"},
		"an added file":           {write("x", "more.bin"), registry.CodeTrust, "file more.bin is not part of the pulled engine"},
		"a file among evidence":   {write("x", pull.Dir, "bundles", "more.json"), registry.CodeTrust, "is not part of the pulled engine"},
		"another manifest":        {write("{}", pull.Dir, "manifest.json"), registry.CodeDigest, "the manifest is"},
		"no manifest":             {remove(pull.Dir, "manifest.json"), registry.CodeDigest, "is missing"},
		"no evidence":             {remove(pull.Dir, "bundles"), registry.CodeTrust, "no signature of a trusted builder"},
		"no record":               {remove(pull.Dir, "pull.json"), registry.CodeInvalid, "was not made by pull"},
		"no folder":               {remove(), registry.CodeInvalid, "was not made by pull"},
		"a record to come":        {record(func(r *pull.Record) { r.V = 2 }), registry.CodeInvalid, "is not a record of pull version 1"},
		"a record that is text":   {write("text", pull.Dir, "pull.json"), registry.CodeInvalid, "is not a record of pull version 1"},
		"a record of no ref":      {record(func(r *pull.Record) { r.Ref = "prod" }), registry.CodeTrust, "its record"},
		"another version":         {record(func(r *pull.Record) { r.Version = "9.9.9" }), registry.CodeTrust, `its record has version "9.9.9"`},
		"another label":           {record(func(r *pull.Record) { r.Label = "x/y" }), registry.CodeTrust, "its record names the engine x/y"},
		"another registry":        {record(func(r *pull.Record) { r.Resource = strings.Replace(r.Resource, "local", "other", 1) }), registry.CodeTrust, "trusted"},
		"a resource of another":   {record(func(r *pull.Record) { r.Resource += "x" }), registry.CodeTrust, "as the resource of"},
		"a resource that is none": {record(func(r *pull.Record) { r.Resource = "https://x" }), registry.CodeTrust, "as the resource of"},
		"another environment": {record(func(r *pull.Record) {
			r.Ref, r.Resource = strings.Replace(r.Ref, "prod/", "staging/", 1), strings.Replace(r.Resource, "prod/", "staging/", 1)
		}), registry.CodeTrust, ""},
		"another release": {record(func(r *pull.Record) { r.Release = "sha256:" + registry.Digest(strings.Repeat("a", 64)) }), registry.CodeTrust, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, result := pulled(t)
			c.change(w, t, result)
			proof, err := w.Check(t.Context(), w.dir, pull.Expectation{})
			if registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("proof %+v, error %v (%s); want %s with %q", proof, err, registry.CodeOf(err), c.code, c.want)
			}
		})
	}
}

// What the caller knows of the folder has to be so; what it leaves open does not matter.
func TestExpectation(t *testing.T) {
	t.Parallel()
	w, _ := pulled(t)
	proof, err := w.Check(t.Context(), w.dir, pull.Expectation{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		want  pull.Expectation
		after time.Duration // since it was promoted
		text  string        // of the error; empty for none
	}{
		"nothing":                 {pull.Expectation{}, 0, ""},
		"the registry":            {pull.Expectation{Registry: "local"}, 0, ""},
		"another registry":        {pull.Expectation{Registry: "other"}, 0, "as the resource of"},
		"another environment":     {pull.Expectation{Environment: "staging"}, 0, "the environment is prod, want staging"},
		"another model":           {pull.Expectation{Model: "other"}, 0, "want other"},
		"the version":             {pull.Expectation{Version: "1.0.0"}, 0, ""},
		"another version":         {pull.Expectation{Version: "1.0.1"}, 0, "the version is 1.0.0, want 1.0.1"},
		"as old as it may be":     {pull.Expectation{MaxAge: time.Hour}, time.Hour, ""},
		"a moment older":          {pull.Expectation{MaxAge: time.Hour}, time.Hour + 1, "want at most 1h0m0s"},
		"any age":                 {pull.Expectation{}, 1000 * time.Hour, ""},
		"from the future":         {pull.Expectation{MaxAge: time.Hour}, -24 * time.Hour, "look at the clocks"},
		"the future, at any age":  {pull.Expectation{}, -24 * time.Hour, ""},
		"unpromoted is no demand": {pull.Expectation{Unpromoted: true, Version: "1.0.0"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checker := w.Checker
			checker.Now = func() time.Time { return proof.Promoted.Add(c.after) }
			_, err := checker.Check(t.Context(), w.dir, c.want)
			if (err == nil) != (c.text == "") || err != nil && (registry.CodeOf(err) != registry.CodeTrust || !strings.Contains(err.Error(), c.text)) {
				t.Errorf("error %v, want %q", err, c.text)
			}
		})
	}
}

// A machine without trusted keys refuses the folder, since it cannot check the evidence.
func TestCheckByOtherTrust(t *testing.T) {
	t.Parallel()
	w, _ := pulled(t)
	for name, c := range map[string]struct {
		err  error // of verifying each bundle
		code registry.Code
	}{
		"no key is trusted":     {registry.Errorf(registry.CodeTrust, "no trusted key"), registry.CodeTrust},
		"evidence is no bundle": {registry.Errorf(registry.CodeInvalid, "no bundle"), registry.CodeInvalid},
		"a key store is away":   {registry.Errorf(registry.CodeUnavailable, "timeout"), registry.CodeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checker := w.Checker
			checker.Verify = func(context.Context, []byte, string) (evidence.Claim, error) { return evidence.Claim{}, c.err }
			if _, err := checker.Check(t.Context(), w.dir, pull.Expectation{}); registry.CodeOf(err) != c.code {
				t.Errorf("error %v, want %s", err, c.code)
			}
		})
	}
}

// An engine that no promoter let in is refused, unless the caller says otherwise. Then a signed statement has to
// name the model, and nothing proves version and age.
func TestUnpromoted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		want  pull.Expectation
		named bool
		text  string
	}{
		"by default":      {pull.Expectation{}, true, "summary"},
		"asked for":       {pull.Expectation{Unpromoted: true}, true, ""},
		"with a version":  {pull.Expectation{Unpromoted: true, Version: "1.0.0"}, true, "nothing proves its version or its age"},
		"with an age":     {pull.Expectation{Unpromoted: true, MaxAge: time.Hour}, true, "nothing proves its version or its age"},
		"without a model": {pull.Expectation{Unpromoted: true}, false, "no signed statement names it as an engine of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			release := w.Build(t, registrytest.Build{})
			w.Prove(t, release)
			if c.named {
				w.name(t, release)
			}
			result, err := w.Pull(t.Context(), query("staging"), w.dir, c.want)
			if (err == nil) != (c.text == "") || err != nil && (registry.CodeOf(err) != registry.CodeTrust || !strings.Contains(err.Error(), c.text)) {
				t.Fatalf("result %+v, error %v; want %q", result, err, c.text)
			}
			if _, missing := os.Stat(w.dir); (missing == nil) != (c.text == "") {
				t.Errorf("folder: %v, want it if and only if the pull succeeds", missing)
			}
			if err != nil {
				return
			}
			proof, err := w.Check(t.Context(), w.dir, c.want)
			if err != nil || proof.Record.Version != "" || proof.Record.Release != "" || proof.Promoter != "" || proof.Builder == "" {
				t.Errorf("proof %+v, error %v; want a builder, and no version, release or promoter", proof, err)
			}
			if want := w.signer(t, evidence.RoleBuilder, result.Record.Resource); proof.Builder != want {
				t.Errorf("builder %s, want %s", proof.Builder, want)
			}
		})
	}
}

// name attaches a statement to each engine that names its model.
func (w *world) name(t *testing.T, release artifact.Release) {
	t.Helper()
	for _, e := range release.Engines {
		statement, err := evidence.NewStatement(evidence.PredicateProvenance, struct{}{},
			evidence.StatementSubject{Name: release.Model, Digest: evidence.NewDigestSet(e.Digest)})
		if err != nil {
			t.Fatal(err)
		}
		bundle, err := w.Keys.SignAs(t.Context(), string(evidence.RoleBuilder), statement)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Attach(t.Context(), api.Attachment{
			Environment: "staging", Model: release.Model, Release: release.Digest, Subject: e.Digest, Bundle: bundle}); err != nil {
			t.Fatal(err)
		}
	}
}

// Pull replaces a folder that it made and an empty one. It leaves any other as it is, also if the pull fails later.
func TestPullReplaces(t *testing.T) {
	t.Parallel()
	file := func(parts ...string) func(*world, *testing.T, pull.Result) {
		return func(w *world, t *testing.T, _ pull.Result) {
			if err := os.MkdirAll(filepath.Dir(w.at(parts...)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(w.at(parts...), []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*world, *testing.T, pull.Result)
		text   string // of the error; empty: it is replaced
	}{
		"as it was pulled": {func(*world, *testing.T, pull.Result) {}, ""},
		"a changed file":   {func(w *world, t *testing.T, r pull.Result) { file(r.Files[0])(w, t, r) }, ""},
		"an empty folder": {func(w *world, t *testing.T, _ pull.Result) {
			if err := errors.Join(os.RemoveAll(w.dir), os.Mkdir(w.dir, 0o700)); err != nil {
				t.Fatal(err)
			}
		}, ""},
		"an added file":   {file("notes.txt"), "has files that no pull put there: notes.txt"},
		"an added folder": {file("logs", "today.txt"), "has files that no pull put there: logs"},
		"an added link": {func(w *world, t *testing.T, _ pull.Result) {
			if err := os.Symlink("/etc", w.at("etc")); err != nil {
				t.Fatal(err)
			}
		}, "has files that no pull put there: etc"},
		"no manifest": {func(w *world, t *testing.T, _ pull.Result) {
			if err := os.Remove(w.at(pull.Dir, "manifest.json")); err != nil {
				t.Fatal(err)
			}
		}, "its manifest no longer lists the pulled files"},
		"a folder of mine": {func(w *world, t *testing.T, r pull.Result) {
			if err := os.RemoveAll(w.dir); err != nil {
				t.Fatal(err)
			}
			file("notes.txt")(w, t, r)
		}, "exists and was not made by pull"},
		"a file of mine": {func(w *world, t *testing.T, _ pull.Result) {
			if err := errors.Join(os.RemoveAll(w.dir), os.WriteFile(w.dir, []byte("mine"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}, "exists and was not made by pull"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, result := pulled(t)
			c.change(w, t, result)
			before := tree(t, w.dir)
			_, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{})
			if (err == nil) != (c.text == "") || err != nil && (registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.text)) {
				t.Fatalf("error %v, want %q", err, c.text)
			}
			if err != nil {
				if after := tree(t, w.dir); !slices.Equal(before, after) {
					t.Errorf("%q became %q, want it untouched", before, after)
				}
				return
			}
			if _, err := w.Check(t.Context(), w.dir, pull.Expectation{}); err != nil {
				t.Errorf("after it: %v, want a folder that can be trusted", err)
			}
		})
	}
}

// tree lists the paths below a folder.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// An engine in quarantine is not pulled, and what was pulled before stays.
func TestPullOfAQuarantinedEngine(t *testing.T) {
	t.Parallel()
	w := setup(t)
	release := w.Promoted(t, registrytest.Build{})
	if _, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{}); err != nil {
		t.Fatal(err)
	}
	before := tree(t, w.dir)
	w.AttachTo(t, "prod", release, release.Digest, evidence.PredicateQuarantine, struct{}{})
	_, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{})
	if err == nil {
		t.Error("it was pulled, want an error")
	}
	if after := tree(t, w.dir); !slices.Equal(before, after) {
		t.Errorf("%q became %q, want it untouched", before, after)
	}
}

// embellishing is a service that says more about an engine than its signed manifest.
type embellishing struct{ api.Interface }

func (e embellishing) Resolve(ctx context.Context, q api.ResolveQuery) (api.Resolution, error) {
	found, err := e.Interface.Resolve(ctx, q)
	if found.Engine != nil {
		other := *found.Engine
		other.Providers = []artifact.Provider{{Name: "CPUExecutionProvider", Options: map[string]string{"use_arena": "0"}}}
		found.Engine = &other
	}
	return found, err
}

// What pull says of an engine is what its manifest says, whatever the service answered.
func TestPullTakesTheWordOfTheManifest(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	honest, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{})
	if err != nil {
		t.Fatal(err)
	}
	w.Puller.Registry = embellishing{w.Interface}
	result, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := result.Resolution.Engine.Providers, honest.Resolution.Engine.Providers; !slices.EqualFunc(got,
		want, func(a, b artifact.Provider) bool { return a.String() == b.String() }) {
		t.Errorf("providers %v, want %v as the manifest has them", got, want)
	}
}

// A proof names the key of the builder, not that of another statement about the engine.
func TestProofNamesTheBuilder(t *testing.T) {
	t.Parallel()
	w, _ := pulled(t)
	proof, err := w.Check(t.Context(), w.dir, pull.Expectation{Environment: "prod"})
	if err != nil || proof.Builder != w.Keys.KeyID("builder") || proof.Promoter != w.Keys.KeyID("promoter") {
		t.Errorf("builder %s, promoter %s, error %v, want the keys of these roles", proof.Builder, proof.Promoter, err)
	}
}

// The inventory of a folder that is not there, or that no pull made, is an error.
func TestInventoryOfAnotherFolder(t *testing.T) {
	t.Parallel()
	w, result := pulled(t)
	if record, ref, err := w.Inventory(w.dir); err != nil || record.Label != result.Record.Label || ref.Digest != result.Resolution.Engine.Digest {
		t.Errorf("record %+v, ref %s, error %v, want the engine that was pulled", record, ref, err)
	}
	for name, dir := range map[string]string{"missing": filepath.Join(t.TempDir(), "missing"), "of somebody else": t.TempDir()} {
		if _, _, err := w.Inventory(dir); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
}

// A pulled folder whose manifest is gone is not replaced: nothing says which files in it were pulled.
func TestPullOverAFolderWithoutItsManifest(t *testing.T) {
	t.Parallel()
	w, _ := pulled(t)
	if err := os.Remove(filepath.Join(w.dir, pull.Dir, "manifest.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{}); err == nil {
		t.Error("it was replaced, want an error")
	}
}

// A machine that trusts nobody is told so once, and not to build or promote.
func TestPullByAMachineThatTrustsNobody(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	w.Verify = registrytest.NewKeys(nil).Verify
	_, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{})
	if !registry.HasCode(err, registry.CodeTrust) || strings.Contains(err.Error(), "mlpromote build") || strings.Contains(err.Error(), "promote it again") {
		t.Errorf("error %v, want CodeTrust without advice to build or promote", err)
	}
	if hints := registry.Hints(err); len(hints) != 1 || !strings.Contains(hints[0], "--trust names") {
		t.Errorf("hints %q, want one about --trust", hints)
	}
}
