package main

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/airgap"
	"mlpromote.dev/mlpromote/registry/oci/layout"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// carriedCommands are the columns for what leaves a registry: trust bundles, checkpoints and saved releases.
func carriedCommands() []tamperCommand {
	return []tamperCommand{
		{"history verify --checkpoint", []string{"history", "verify", "--checkpoint", "kept.checkpoint"}, false},
		{"pull, on a node that follows", []string{"pull", "vision/digits", "--env", "prod", "-o", "fresh", "--trust", "node/trust.yaml"}, true},
		{"trust, folder of that node", []string{"trust", "pulled", "--env", "prod", "--trust", "node/trust.yaml"}, false},
		{"load, on that node", []string{"load", "digits.tar", "--env", "prod", "--trust", "node/trust.yaml", "--data", "fresh"}, true},
	}
}

// carry makes what leaves the registry: a node follows its trust bundles and has accepted the second, somebody
// keeps a checkpoint, and 1.0.0 is saved to a file. Both trust bundles have a restriction list.
func (w *tampered) carry(t *testing.T) {
	t.Helper()
	for i, source := range []string{"0", "1"} {
		w.must(t, "quarantine", "--source", "sha256:"+strings.Repeat(source, 64), "--env", "prod", "--reason", "another model")
		if i == 1 {
			w.must(t, "history", "checkpoint", "-o", "kept.checkpoint")
		}
		w.must(t, "trust", "publish")
	}
	key, err := os.ReadFile(filepath.Join(w.dir, defaultData, "keys", "publisher.pub"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(w.dir, "node", "publisher.pub"), string(key))
	write(t, filepath.Join(w.dir, "node", "trust.yaml"), "version: 1\nregistry: local\nfollow: {publishers: [publisher.pub], state: state}\n")
	w.must(t, "pull", "vision/digits", "--env", "prod", "-o", "pulled", "--trust", "node/trust.yaml")
	w.must(t, "save", "prod/vision/digits", "-o", "digits.tar")
	// Another registry, for which the same keys speak.
	other := filepath.Join(w.dir, "other")
	if err := os.CopyFS(filepath.Join(other, "keys"), os.DirFS(filepath.Join(w.dir, defaultData, "keys"))); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(other, "environments.yaml"),
		strings.ReplaceAll(strings.Replace(tamperedPolicy, "registry: local", "registry: other", 1), "oci://local/", "oci://other/"))
	w.must(t, "trust", "publish", "--data", "other")
	w.must(t, "history", "checkpoint", "-o", "other.checkpoint", "--data", "other")
}

func carriedTampers() []tamper {
	none := "no publisher that this machine knows signed it"
	return []tamper{
		{"the newest trust bundle", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			execute(t, dir, "UPDATE documents SET body = replace(body, 'eyJ', 'eyK') WHERE kind = 'trust bundle'")
			return []string{"trust bundle 2", `trust bundle "2"`}
		}, false},
		{"the newest trust bundle, left out", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			execute(t, dir, "DELETE FROM documents WHERE kind = 'trust bundle'")
			return []string{"trust bundle 2", `trust bundle "2"`}
		}, false},
		{"an older trust bundle in its place", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			handOut(t, dir, trustBundles(t, filepath.Join(dir, defaultData))[0].Bundle)
			return []string{"trust bundle 1", "event "}
		}, false},
		{"the content of one trust bundle with the signature of another", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			all := trustBundles(t, filepath.Join(dir, defaultData))
			handOut(t, dir, spliced(t, all[0].Bundle, all[1].Bundle))
			return []string{none, "event "}
		}, false},
		{"the trust bundle of another registry with the same keys", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			handOut(t, dir, trustBundles(t, filepath.Join(dir, "other"))[0].Bundle)
			return []string{"trust bundle", "event "}
		}, false},
		{"the trust bundle that the node accepted", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			return flipFile(t, filepath.Join(dir, "node", "state", "0000000000000000002.json"))
		}, false},
		{"the checkpoint that is kept elsewhere", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			path := filepath.Join(dir, "kept.checkpoint")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, otherRoot(string(text)))
			return []string{"kept.checkpoint"}
		}, false},
		{"the checkpoint of another registry in its place", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			text, err := os.ReadFile(filepath.Join(dir, "other.checkpoint"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "kept.checkpoint"), string(text))
			return []string{"kept.checkpoint"}
		}, false},
		{"the checkpoint that the registry keeps", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			rewriteKept(t, filepath.Join(dir, defaultData))
			return []string{"checkpoint"}
		}, false},
		{"the newest events, left out with all that came with them", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			cut(t, dir)
			return []string{"checkpoint", "trust bundle 1"}
		}, true},
		{"a file in a saved release", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			flipSaved(t, filepath.Join(dir, "digits.tar"))
			return []string{"of the saved release is damaged"}
		}, false},
		{"evidence, left out of a saved release without a trace", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			repack(t, filepath.Join(dir, "digits.tar"), func(m *ocispec.Manifest, _ func([]byte) ocispec.Descriptor) bool {
				return m.Subject == nil || m.ArtifactType == airgap.OriginType
			})
			return []string{"summary", "promoter"}
		}, false},
		{"the restriction list, left out of a saved release without a trace, of a release that is restricted", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			w.mustIn(t, dir, "quarantine", "--toolchain", "onnxruntime@>=0.0.1", "--env", "prod", "--reason", "recalled by its vendor")
			w.mustIn(t, dir, "trust", "publish")
			if _, told, code := w.run(t, dir, "pull", "vision/digits", "--env", "prod",
				"-o", "fresh", "--trust", "node/trust.yaml"); code != registry.ExitNoEngine {
				t.Fatalf("pull of what is restricted: exit code %d\n%s", code, told)
			}
			repack(t, filepath.Join(dir, "digits.tar"), without(airgap.RestrictionsFile))
			return []string{"recalled by its vendor"}
		}, true},
		{"the trust bundle of a saved release, one of another registry in its place", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			bundle := trustBundles(t, filepath.Join(dir, "other"))[0].Bundle
			repack(t, filepath.Join(dir, "digits.tar"), replacing(airgap.TrustBundleFile, bundle))
			return []string{"trust bundle", none}
		}, false},
	}
}

// trustBundles are those of a data directory, by version.
func trustBundles(t *testing.T, data string) []storage.TrustBundleDocument {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(data, "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	page, err := db.TrustBundles().List(t.Context(), "", storage.MaxPage)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]storage.TrustBundleDocument, len(page))
	for _, d := range page {
		b, err := trust.PeekTrustBundle(d.Document.Bundle)
		if err != nil || b.Version < 1 || b.Version > int64(len(page)) {
			t.Fatalf("trust bundle %d of %d, error %v", b.Version, len(page), err)
		}
		all[b.Version-1] = d.Document
	}
	return all
}

// handOut makes the registry hand out a bundle as its newest.
func handOut(t *testing.T, dir string, bundle []byte) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, defaultData, "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	all := trustBundles(t, filepath.Join(dir, defaultData))
	newest, name := digest.FromBytes(all[len(all)-1].Bundle), digest.FromBytes(bundle)
	if err := errors.Join(db.TrustBundles().Put(t.Context(), string(name), storage.TrustBundleDocument{Bundle: bundle}), db.Close()); err != nil {
		t.Fatal(err)
	}
	execute(t, dir, "DROP TRIGGER IF EXISTS history_append_only_update",
		fmt.Sprintf("UPDATE history SET body = replace(body, '%s', '%s') WHERE kind = 'trust-bundle' AND body LIKE '%%%s%%'", newest, name, newest))
}

// otherRoot is a checkpoint with another root, which is its third line, and the signature as it was.
func otherRoot(note string) string {
	lines := strings.SplitN(note, "\n", 4)
	root := digest.FromString(note)
	raw, _ := hex.DecodeString(root.Encoded())
	lines[2] = base64.StdEncoding.EncodeToString(raw)
	return strings.Join(lines, "\n")
}

// rewriteKept changes the roots of the checkpoints that a registry keeps.
func rewriteKept(t *testing.T, data string) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(data, "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all, err := db.Checkpoints().List(t.Context(), "", storage.MaxPage)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d checkpoints, error %v", len(all), err)
	}
	for _, c := range all {
		c.Document.Note = otherRoot(c.Document.Note)
		if err := db.Checkpoints().Put(t.Context(), c.Name, c.Document); err != nil {
			t.Fatal(err)
		}
	}
}

// spliced is the content of one bundle with the signature of another.
func spliced(t *testing.T, content, signature []byte) []byte {
	t.Helper()
	var from, to map[string]any
	if err := errors.Join(json.Unmarshal(content, &from), json.Unmarshal(signature, &to)); err != nil {
		t.Fatal(err)
	}
	to["dsseEnvelope"].(map[string]any)["payload"] = from["dsseEnvelope"].(map[string]any)["payload"]
	bundle, err := json.Marshal(to)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

// cut deletes the newest two events, a restriction list and a trust bundle, as if they had never been: what
// they named, and every checkpoint that the registry keeps.
func cut(t *testing.T, dir string) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, defaultData, "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	bundles := trustBundles(t, filepath.Join(dir, defaultData))
	newest, err := trust.PeekTrustBundle(bundles[1].Bundle)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(db.TrustBundles().Delete(t.Context(), string(digest.FromBytes(bundles[1].Bundle))),
		db.RestrictionBundles().Delete(t.Context(), string(newest.RestrictionsOf("prod").Digest)), db.Close())
	if err != nil {
		t.Fatal(err)
	}
	execute(t, dir, "DROP TRIGGER IF EXISTS history_append_only_delete", "DELETE FROM history WHERE seq > (SELECT max(seq) - 2 FROM history)",
		"DELETE FROM documents WHERE kind = 'checkpoint'")
}

// without drops a file from what a saved release has beside it.
func without(title string) func(*ocispec.Manifest, func([]byte) ocispec.Descriptor) bool {
	return func(m *ocispec.Manifest, _ func([]byte) ocispec.Descriptor) bool {
		m.Layers = slices.DeleteFunc(m.Layers, func(l ocispec.Descriptor) bool {
			return m.ArtifactType == airgap.OriginType && l.Annotations[ocispec.AnnotationTitle] == title
		})
		return true
	}
}

// replacing puts other bytes in place of a file that a saved release has beside it.
func replacing(title string, data []byte) func(*ocispec.Manifest, func([]byte) ocispec.Descriptor) bool {
	return func(m *ocispec.Manifest, add func([]byte) ocispec.Descriptor) bool {
		for i, l := range m.Layers {
			if m.ArtifactType == airgap.OriginType && l.Annotations[ocispec.AnnotationTitle] == title {
				desc := add(data)
				m.Layers[i].Digest, m.Layers[i].Size = desc.Digest, desc.Size
			}
		}
		return true
	}
}

// repack writes a saved release again as save would have: with the manifests that keep keeps, which may change
// those that have a subject. No digest tells that something was changed.
func repack(t *testing.T, path string, keep func(m *ocispec.Manifest, add func([]byte) ocispec.Descriptor) bool) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	in, err := layout.Open(t.Context(), bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	blobs, out := unpacked(t, data), layout.NewWriter()
	add := func(b []byte) ocispec.Descriptor {
		desc := ocispec.Descriptor{Digest: digest.FromBytes(b), Size: int64(len(b))}
		if err := out.Send(t.Context(), desc, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }); err != nil {
			t.Fatal(err)
		}
		return desc
	}
	for _, d := range in.Manifests() {
		var m ocispec.Manifest
		if err := json.Unmarshal(blobs[d], &m); err != nil {
			t.Fatal(err)
		}
		before := asText(t, m)
		if !keep(&m, add) {
			continue
		}
		raw := blobs[d]
		if after := asText(t, m); after != before {
			raw = []byte(after)
		}
		for _, l := range append(m.Layers, m.Config) {
			if b, ok := blobs[l.Digest]; ok {
				add(b)
			}
		}
		desc := ocispec.Descriptor{MediaType: m.MediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
		if err := out.Push(t.Context(), desc, bytes.NewReader(raw)); err != nil {
			t.Fatal(err)
		}
	}
	release, tag := in.Release()
	var again bytes.Buffer
	if err := out.Write(t.Context(), &again, release, tag); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(again.Bytes(), data) {
		t.Fatal("nothing was changed")
	}
	write(t, path, again.String())
}

// asText is canonical JSON.
func asText(t *testing.T, v any) string {
	t.Helper()
	raw, err := registry.CanonicalJSON(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// flipSaved changes one bit in the middle of the largest file of a saved release. The middle of the archive
// itself may be the header of a file, whose damage is another finding.
func flipSaved(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var largest []byte
	for _, blob := range unpacked(t, data) {
		if len(blob) > len(largest) {
			largest = blob
		}
	}
	at := bytes.Index(data, largest)
	if at < 0 {
		t.Fatal("the archive does not hold its largest file in one piece")
	}
	data[at+len(largest)/2] ^= 1
	write(t, path, string(data))
}

// unpacked are the blobs of a saved release.
func unpacked(t *testing.T, archive []byte) map[digest.Digest][]byte {
	t.Helper()
	blobs := make(map[digest.Digest][]byte)
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		_, err := r.Next()
		if errors.Is(err, io.EOF) {
			return blobs
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		blobs[digest.FromBytes(data)] = data
	}
}
