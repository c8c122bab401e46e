package pull_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/pull"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Whoever can write into the folder while it is checked gets nothing in: a file that was
// listed is the one that is read, or the folder is refused.
func TestCheckWhileFilesAreExchanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		exchange func(path string) error
		text     string
	}{
		"for an equal file": {func(path string) error {
			data, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path+".new", data, 0o600), os.Rename(path+".new", path))
		}, "was exchanged while it was looked at"},
		"for a link to it": {func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.Symlink("/etc/hostname", path))
		}, "path escapes from parent"},
		"for nothing": {os.Remove, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, result := pulled(t)
			checker := w.Checker
			checker.ReadPart = func(manifest []byte) (storage.FetchedPart, error) { // after the listing, before the files
				part, err := w.ReadPart(manifest)
				return part, errors.Join(err, c.exchange(w.at(result.Files[0])))
			}
			proof, err := checker.Check(t.Context(), w.dir, pull.Expectation{})
			if registry.CodeOf(err) != registry.CodeTrust || !strings.Contains(err.Error(), c.text) {
				t.Errorf("proof %+v, error %v (%s); want CodeTrust with %q", proof, err, registry.CodeOf(err), c.text)
			}
		})
	}
}

// The folder of a release's reference model is no engine, although its digest is known from
// signed statements too.
func TestCheckOfAPartThatIsNoEngine(t *testing.T) {
	t.Parallel()
	w := setup(t)
	release := w.Promoted(t, registrytest.Build{})
	result, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range result.Files {
		if err := os.Remove(w.at(name)); err != nil {
			t.Fatal(err)
		}
	}
	part, err := w.Puller.Parts.Fetch(t.Context(), registry.SourcesRepository("staging", release.Model), release.Engines[0].Reference, w.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.at(pull.Dir, "manifest.json"), part.Manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	w.edit(t, func(r *pull.Record) {
		r.Ref, _, _ = strings.Cut(r.Ref, "@")
		r.Ref += "@" + string(release.Engines[0].Reference)
		r.Label = part.Engine.Label()
	})
	for name, want := range map[string]pull.Expectation{"promoted": {}, "unpromoted": {Unpromoted: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proof, err := w.Check(t.Context(), w.dir, want)
			if registry.CodeOf(err) != registry.CodeTrust || !strings.Contains(err.Error(), `a part with the role "reference", want an engine`) {
				t.Errorf("proof %+v, error %v; want CodeTrust for a reference model", proof, err)
			}
		})
	}
}

// An engine that has a file where pull keeps its own could bring its own record and evidence.
func TestCheckOfAnEngineWithARecord(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".mlpromote/pull.json", ".mlpromote"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := pulled(t)
			checker := w.Checker
			checker.ReadPart = func(manifest []byte) (storage.FetchedPart, error) {
				part, err := w.ReadPart(manifest)
				part.Files = append(part.Files, artifact.File{Path: name, Digest: part.Files[0].Digest})
				return part, err
			}
			_, err := checker.Check(t.Context(), w.dir, pull.Expectation{})
			if registry.CodeOf(err) != registry.CodeTrust {
				t.Errorf("error %v (%s), want CodeTrust for an engine with the file %s", err, registry.CodeOf(err), name)
			}
		})
	}
}

// What is read into memory has a bound, and it holds for each document of the folder: an
// endless one must not hide a quarantine.
func TestCheckBoundsDocuments(t *testing.T) {
	t.Parallel()
	const most = 4 << 20
	for name, c := range map[string]struct {
		size int
		path func(w *world, t *testing.T) string
		code registry.Code
		text string
	}{
		"a record of 4 MiB":     {most, record, "", ""},
		"a larger record":       {most + 1, record, registry.CodeTrust, "want at most 4194304 bytes"},
		"a larger bundle":       {most + 1, aBundle, registry.CodeTrust, "want at most 4194304 bytes"},
		"a larger manifest":     {most + 1, manifest, registry.CodeTrust, "want at most 4194304 bytes"},
		"a manifest of 4 MiB":   {most, manifest, registry.CodeDigest, "the manifest is"},
		"a bundle that is text": {most, newBundle, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := pulled(t)
			pad(t, c.path(w, t), c.size)
			_, err := w.Check(t.Context(), w.dir, pull.Expectation{})
			if (err == nil) != (c.text == "") || err != nil && (registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text)) {
				t.Errorf("error %v (%s), want %s with %q", err, registry.CodeOf(err), c.code, c.text)
			}
		})
	}
}

func record(w *world, _ *testing.T) string { return w.at(pull.Dir, "pull.json") }

func manifest(w *world, _ *testing.T) string { return w.at(pull.Dir, "manifest.json") }

func aBundle(w *world, t *testing.T) string {
	return w.at(pull.Dir, "bundles", w.bundles(t, 0)[0])
}

func newBundle(w *world, _ *testing.T) string {
	return w.at(pull.Dir, "bundles", strings.Repeat("0", 64)+".sigstore.json")
}

// pad appends spaces to a file, which mean nothing in JSON.
func pad(t *testing.T, path string, size int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(data, bytes.Repeat([]byte(" "), size-len(data))...), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The folder that is to be replaced may be a trap for the one who reads it.
func TestPullOntoATrap(t *testing.T) {
	t.Parallel()
	replace := func(with func(path string) error) func(path string) error {
		return func(path string) error { return errors.Join(os.Remove(path), with(path)) }
	}
	for name, spoil := range map[string]func(path string) error{
		"a manifest that is a device":   replace(func(path string) error { return os.Symlink("/dev/zero", path) }),
		"a manifest that is a folder":   replace(func(path string) error { return os.Mkdir(path, 0o700) }),
		"a manifest of a gigabyte":      func(path string) error { return os.Truncate(path, 1<<30) },
		"a manifest that is none":       func(path string) error { return os.WriteFile(path, []byte("{}"), 0o600) },
		"a manifest with one byte more": func(path string) error { return os.Truncate(path, 4<<20+1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := pulled(t)
			if err := spoil(w.at(pull.Dir, "manifest.json")); err != nil {
				t.Fatal(err)
			}
			_, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{})
			if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), "no longer lists the pulled files") {
				t.Errorf("error %v (%s), want CodeInvalid that says the files are unknown", err, registry.CodeOf(err))
			}
		})
	}
}

// A manifest that is as large as a document may be still says which files were pulled.
func TestPullOntoALargeManifest(t *testing.T) {
	t.Parallel()
	w, _ := pulled(t)
	pad(t, manifest(w, t), 4<<20)
	if _, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{}); err != nil {
		t.Errorf("error %v, want the folder replaced", err)
	}
}

// An error names at most five of the files that a pull would destroy.
func TestPullNamesAddedFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		add, want string
	}{
		"one":            {"a", "no pull put there: a\n"},
		"five":           {"a b c d e", "no pull put there: a, b, c, d, e\n"},
		"six":            {"a b c d e f", "no pull put there: a, b, c, d, e and others\n"},
		"among evidence": {".mlpromote/bundles/x.json", "no pull put there: .mlpromote/bundles/x.json\n"},
		"a folder":       {"logs/a logs/b", "no pull put there: logs\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := pulled(t)
			for _, f := range strings.Fields(c.add) {
				if err := errors.Join(os.MkdirAll(filepath.Dir(w.at(f)), 0o700), os.WriteFile(w.at(f), nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{})
			if err == nil || !strings.Contains(err.Error()+"\n", c.want) {
				t.Errorf("error %v, want one that ends with %q", err, c.want)
			}
		})
	}
}

// What is named like evidence and is none is a stranger in the folder.
func TestEvidenceThatIsNoFile(t *testing.T) {
	t.Parallel()
	for name, create := range map[string]func(path string) error{
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"a link":   func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := pulled(t)
			if err := create(newBundle(w, t)); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Check(t.Context(), w.dir, pull.Expectation{}); registry.CodeOf(err) != registry.CodeTrust {
				t.Errorf("check: error %v, want CodeTrust", err)
			}
			if _, err := w.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{}); registry.CodeOf(err) != registry.CodeInvalid {
				t.Errorf("pull: error %v, want CodeInvalid: it is no evidence that a pull wrote", err)
			}
		})
	}
}

// signer is the key that signs in a role.
func (w *world) signer(t *testing.T, role evidence.Role, resource string) string {
	t.Helper()
	statement, err := json.Marshal(evidence.Statement{})
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := w.Keys.SignAs(t.Context(), string(role), statement)
	if err != nil {
		t.Fatal(err)
	}
	claim, err := w.Keys.Verify(t.Context(), bundle, resource)
	if err != nil {
		t.Fatal(err)
	}
	return claim.Signer
}

// The proof names the keys that signed: the builder's for the engine, the promoter's for the summary.
func TestProofNamesTheSigners(t *testing.T) {
	t.Parallel()
	w, result := pulled(t)
	proof, err := w.Check(t.Context(), w.dir, pull.Expectation{})
	if err != nil {
		t.Fatal(err)
	}
	if want := w.signer(t, evidence.RoleBuilder, result.Record.Resource); proof.Builder != want {
		t.Errorf("builder %s, want %s", proof.Builder, want)
	}
	if want := w.signer(t, evidence.RolePromoter, result.Record.Resource); proof.Promoter != want {
		t.Errorf("promoter %s, want %s", proof.Promoter, want)
	}
	if filepath.Base(proof.Record.Resource) != "digits" {
		t.Errorf("resource %s, want that of the model", proof.Record.Resource)
	}
}
