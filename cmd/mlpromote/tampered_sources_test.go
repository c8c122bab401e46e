package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// sourceCommands are the columns for what an engine is judged by.
func sourceCommands() []tamperCommand {
	return []tamperCommand{
		{"verify", []string{"verify", "staging/vision/digits:1.1.0"}, true},
		{"promote", []string{"promote", "staging/vision/digits:1.1.0"}, true},
		{"scrub", []string{"scrub"}, false},
	}
}

// sourceTampers are the parts of the sources, and what verify reads beside them.
func sourceTampers() []tamper {
	part := func(kind artifact.PartKind) func(*testing.T, *tampered, string) []string {
		return func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			return flipLayer(t, dir, partOf(t, dir, w.sources, kind))
		}
	}
	return []tamper{
		{"the reference model", part(artifact.PartReference), false},
		{"the cases", part(artifact.PartCases), false},
		{"the outputs that the reference model gave", part(artifact.PartGolden), false},
		{"the index of the sources", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			return flipBlob(t, dir, w.sources)
		}, false},
		{"the limits", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			return flipLayer(t, dir, w.limits)
		}, false},
		{"the interface", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			return flipLayer(t, dir, w.promises)
		}, false},
		{"a file of an engine", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			var names []string
			for _, e := range w.engines {
				names = append(names, flipLayer(t, dir, e)...)
			}
			return names
		}, false},
		{"a trusted key of the verifier, another one in its file", func(t *testing.T, _ *tampered, dir string) []string {
			t.Helper()
			other, err := os.ReadFile(filepath.Join(dir, defaultData, "keys", "approver.pub"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, defaultData, "keys", "local.pub"), string(other))
			return []string{"key", "signature", "trust"}
		}, false},
	}
}

// partOf is the manifest of a part of the sources.
func partOf(t *testing.T, dir string, sources registry.Digest, kind artifact.PartKind) registry.Digest {
	t.Helper()
	data, err := os.ReadFile(blobOf(dir, sources))
	if err != nil {
		t.Fatal(err)
	}
	var index ocispec.Index
	if err := json.Unmarshal(data, &index); err != nil {
		t.Fatal(err)
	}
	for _, m := range index.Manifests {
		if strings.Contains(m.ArtifactType+m.Annotations["dev.mlpromote.role"], string(kind)) {
			return m.Digest
		}
	}
	t.Fatalf("%s has no part %s: %+v", sources, kind, index.Manifests)
	return ""
}
