package pull_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/pull"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/storage"
)

// between stands between a Puller and its registry. Nil functions change nothing.
type between struct {
	pull.Puller
	environments func() error
	restrictions func() error
	fetched      func(dir string) error
	evidence     func(iter.Seq2[evidence.Bundle, error]) iter.Seq2[evidence.Bundle, error]
}

// puller is a Puller behind it.
func (b between) puller() pull.Puller {
	p := b.Puller
	p.Registry, p.Parts, p.Evidence = b, b, b
	return p
}

func (b between) Resolve(ctx context.Context, q api.ResolveQuery) (api.Resolution, error) {
	return b.Registry.Resolve(ctx, q)
}

func (b between) Environments(ctx context.Context) (policy.Environments, error) {
	if b.environments != nil {
		if err := b.environments(); err != nil {
			return policy.Environments{}, err
		}
	}
	return b.Registry.Environments(ctx)
}

func (b between) Restrictions(ctx context.Context, environment string) (restriction.SignedRestrictions, error) {
	if b.restrictions != nil {
		if err := b.restrictions(); err != nil {
			return restriction.SignedRestrictions{}, err
		}
	}
	return b.Registry.Restrictions(ctx, environment)
}

func (b between) Fetch(ctx context.Context, repository string, part registry.Digest, dir string) (storage.FetchedPart, error) {
	found, err := b.Parts.Fetch(ctx, repository, part, dir)
	if err == nil && b.fetched != nil {
		err = b.fetched(dir)
	}
	return found, err
}

func (b between) Evidence(ctx context.Context, repository string, subject registry.Digest) iter.Seq2[evidence.Bundle, error] {
	found := b.Puller.Evidence.Evidence(ctx, repository, subject)
	if b.evidence != nil {
		return b.evidence(found)
	}
	return found
}

// A pull that fails on the way says why, ends the step that it began, and leaves nothing behind.
func TestPullFails(t *testing.T) {
	t.Parallel()
	away := registry.Errorf(registry.CodeUnavailable, "the line is dead")
	for name, spoil := range map[string]func(*between){
		"before the names of environments": func(b *between) { b.environments = func() error { return away } },
		"before the list of restrictions":  func(b *between) { b.restrictions = func() error { return away } },
		"while files come":                 func(b *between) { b.fetched = func(string) error { return away } },
		"where no record can be written": func(b *between) {
			b.fetched = func(dir string) error {
				if err := os.WriteFile(filepath.Join(dir, pull.Dir), nil, 0o600); err != nil {
					return err
				}
				return nil
			}
		},
		"while evidence comes": func(b *between) {
			b.evidence = func(all iter.Seq2[evidence.Bundle, error]) iter.Seq2[evidence.Bundle, error] {
				return func(yield func(evidence.Bundle, error) bool) {
					for bundle, err := range all {
						if !yield(bundle, err) {
							return
						}
					}
					yield(evidence.Bundle{}, away)
				}
			}
		},
		"while evidence is verified": func(b *between) {
			b.Verify = func(context.Context, []byte, string) (evidence.Claim, error) { return evidence.Claim{}, away }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.Promoted(t, registrytest.Build{})
			b := between{Puller: w.Puller}
			spoil(&b)
			var step string
			var ended error
			b.Step = func(name string) func(error) {
				step = name
				return func(err error) { ended = err }
			}
			_, err := b.puller().Pull(t.Context(), query("prod"), w.dir, pull.Expectation{})
			if err == nil {
				t.Fatal("the pull succeeds, want an error")
			}
			if name != "where no record can be written" && registry.CodeOf(err) != registry.CodeUnavailable {
				t.Errorf("error %v (%s), want %v", err, registry.CodeOf(err), away)
			}
			if !strings.HasPrefix(step, "pull prod/"+registrytest.Model+"@") {
				t.Errorf("the step is called %q, want pull and the engine", step)
			}
			if ended != err { //nolint:errorlint // the same error, not one like it
				t.Errorf("the step ended with %v, want %v", ended, err)
			}
			if left, err := os.ReadDir(filepath.Dir(w.dir)); err != nil || len(left) != 0 {
				t.Errorf("%v is left, error %v; want nothing", left, err)
			}
		})
	}
}

// A file that cannot be written is the reason that the pull gives, not what a check of the
// unfinished folder finds.
func TestPullThatCannotWrite(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"its record": "pull.json", "the manifest": "manifest.json", "evidence": "bundles/{}.sigstore.json"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.Promoted(t, registrytest.Build{})
			var staged string
			inTheWay := func(name string) error { return os.MkdirAll(filepath.Join(staged, pull.Dir, name), 0o700) }
			b := between{Puller: w.Puller, fetched: func(dir string) error {
				staged = dir
				return inTheWay(file)
			}}
			b.evidence = func(all iter.Seq2[evidence.Bundle, error]) iter.Seq2[evidence.Bundle, error] {
				return func(yield func(evidence.Bundle, error) bool) {
					for bundle, err := range all {
						if err == nil {
							err = inTheWay(strings.Replace(file, "{}", bundle.Digest.Encoded(), 1))
						}
						if !yield(bundle, err) {
							return
						}
					}
				}
			}
			_, err := b.puller().Pull(t.Context(), query("prod"), w.dir, pull.Expectation{})
			if err == nil || !strings.Contains(err.Error(), "is a directory") {
				t.Errorf("error %v, want that a directory is in the way", err)
			}
			if _, err := os.Stat(w.dir); !os.IsNotExist(err) {
				t.Errorf("the folder after it: %v, want none", err)
			}
		})
	}
}

// afterCheck does something with the folder of a pull when its files were checked, before it is put
// in place.
func (w *world) afterCheck(do func(staged string) error) pull.Puller {
	var staged string
	checked := false
	p := between{Puller: w.Puller, fetched: func(dir string) error { staged = dir; return nil }}.puller()
	p.ReadPart = func(manifest []byte) (storage.FetchedPart, error) {
		checked = staged != "" // of the folder that is replaced it is read before
		return w.ReadPart(manifest)
	}
	p.Verify = func(ctx context.Context, bundle []byte, resource string) (evidence.Claim, error) {
		claim, err := w.Verify(ctx, bundle, resource)
		if checked && err == nil {
			checked, err = false, do(staged)
		}
		return claim, err
	}
	return p
}

// What cannot be made durable is not put in place of what was there.
func TestPullOfAFileThatGoesAway(t *testing.T) {
	t.Parallel()
	w, result := pulled(t)
	_, err := w.afterCheck(func(staged string) error {
		file := filepath.Join(staged, result.Files[0])
		return errors.Join(os.Remove(file), os.Symlink("nowhere", file))
	}).Pull(t.Context(), query("prod"), w.dir, pull.Expectation{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want that a file does not exist", err)
	}
	if _, err := w.Check(t.Context(), w.dir, pull.Expectation{}); err != nil {
		t.Errorf("the folder that was there: %v, want it as it was", err)
	}
}

// The folder is pulled to a path that does not exist yet, readable for whoever loads the engine.
func TestPullMakesTheFolder(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	dir := filepath.Join(w.dir, "models", "digits")
	var ended []error
	w.Step = func(string) func(error) { return func(err error) { ended = append(ended, err) } }
	if _, err := w.Pull(t.Context(), query("prod"), dir, pull.Expectation{}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o755 {
		t.Errorf("the folder has mode %o, want 755", got)
	}
	if len(ended) != 1 || ended[0] != nil {
		t.Errorf("the step ended with %v, want once without an error", ended)
	}
}

// A folder below a file can never be made. Nothing is asked of the registry: the Puller has none.
func TestPullBelowAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (pull.Puller{}).Pull(t.Context(), api.ResolveQuery{}, filepath.Join(file, "engine"), pull.Expectation{}); err == nil {
		t.Error("the pull succeeds, want an error")
	}
}

// What is put into the folder during the download is not lost.
func TestPullKeepsWhatCameMeanwhile(t *testing.T) {
	t.Parallel()
	w, _ := pulled(t)
	b := between{Puller: w.Puller, fetched: func(string) error { return os.WriteFile(w.at("notes.txt"), []byte("mine"), 0o600) }}
	_, err := b.puller().Pull(t.Context(), query("prod"), w.dir, pull.Expectation{})
	if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), "has files that no pull put there: notes.txt") {
		t.Errorf("error %v (%s), want CodeInvalid that names notes.txt", err, registry.CodeOf(err))
	}
	if text, err := os.ReadFile(w.at("notes.txt")); string(text) != "mine" {
		t.Errorf("notes.txt has %q, error %v; want what was written", text, err)
	}
}

// A stranger who attaches evidence without end fills no disk, and hides no evidence that counts.
func TestPullBoundsEvidenceOfStrangers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	flood := func(all iter.Seq2[evidence.Bundle, error]) iter.Seq2[evidence.Bundle, error] {
		return func(yield func(evidence.Bundle, error) bool) {
			for i := range 6 {
				data := bytes.Repeat([]byte{byte('a' + i)}, 4<<20)
				d := digest.FromBytes(data)
				if !yield(evidence.Bundle{Digest: d, Document: d, Data: data}, nil) {
					return
				}
			}
			all(yield)
		}
	}
	b := between{Puller: w.Puller, evidence: flood}
	if _, err := b.puller().Pull(t.Context(), query("prod"), w.dir, pull.Expectation{}); err != nil {
		t.Fatal(err)
	}
	if got := len(w.bundles(t, 4<<20)); got != 4 {
		t.Errorf("%d bundles of 4 MiB by strangers were kept, want 4: the 16 MiB that are allowed", got)
	}
}

// One document that is attached through several manifests is one file.
func TestPullWritesADocumentOnce(t *testing.T) {
	t.Parallel()
	w, _ := pulled(t)
	once := len(w.bundles(t, 0))
	b := between{Puller: w.Puller, evidence: func(all iter.Seq2[evidence.Bundle, error]) iter.Seq2[evidence.Bundle, error] {
		return func(yield func(evidence.Bundle, error) bool) {
			for bundle, err := range all {
				again := bundle
				again.Digest = digest.FromString("another manifest of " + string(bundle.Digest))
				if !yield(bundle, err) || !yield(again, err) {
					return
				}
			}
		}
	}}
	if _, err := b.puller().Pull(t.Context(), query("prod"), w.dir, pull.Expectation{}); err != nil {
		t.Fatal(err)
	}
	if got := len(w.bundles(t, 0)); got != once || once == 0 {
		t.Errorf("%d bundles where every document is attached twice, want %d as where it is attached once", got, once)
	}
}

// bundles lists the evidence in the folder that has at least a size.
func (w *world) bundles(t *testing.T, atLeast int64) []string {
	t.Helper()
	entries, err := os.ReadDir(w.at(pull.Dir, "bundles"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Size() >= atLeast {
			names = append(names, e.Name())
		}
	}
	return names
}

// larger adds files to every engine that is stored.
type larger struct {
	storage.PartStore
	add []artifact.File
}

func (l larger) PutPart(ctx context.Context, repository string, p storage.Part) (storage.PartRef, error) {
	if p.Role == artifact.PartEngine {
		for _, f := range l.add {
			p.Engine.NativeCode = p.Engine.NativeCode || f.Kind == artifact.FileCode
			text := "file " + f.Path
			f.Digest, f.Size = digest.FromString(text), int64(len(text))
			p.Files = append(slices.Clone(p.Files), storage.PartFile{File: f,
				Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }})
		}
	}
	return l.PartStore.PutPart(ctx, repository, p)
}

// An engine may have folders and native libraries. The result names the libraries, because
// whoever loads the engine runs them.
func TestPullOfAnEngineWithFolders(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Registry.Parts = larger{w.Registry.Parts, []artifact.File{{Path: "assets/words/en.txt", Kind: artifact.FileAsset},
		{Path: "lib/fast.so", Kind: artifact.FileCode}}}
	release := w.Build(t, registrytest.Build{})
	w.Prove(t, release)
	w.name(t, release)
	want := pull.Expectation{Unpromoted: true} // prod allows no library
	result, err := w.Pull(t.Context(), query("staging"), w.dir, want)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"lib/fast.so"}; !slices.Equal(result.Operators, want) {
		t.Errorf("operator libraries %q, want %q", result.Operators, want)
	}
	for _, name := range []string{"assets/words/en.txt", "lib/fast.so"} {
		if !slices.Contains(result.Files, name) {
			t.Errorf("files %q, want %s among them", result.Files, name)
		}
	}
	if _, err := w.Pull(t.Context(), query("staging"), w.dir, want); err != nil {
		t.Errorf("pulled again: %v, want the folder replaced", err)
	}
}
