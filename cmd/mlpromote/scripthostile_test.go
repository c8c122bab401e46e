package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/rogpeppe/go-internal/testscript"
	orasregistry "oras.land/oras-go/v2/registry/remote"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/imageform"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/signer/keyfile"
)

// pickled is a pickle that runs a command when it is loaded.
const pickled = "\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R."

// cmdHostile does what somebody can who may push to a registry of others and has a builder's key without a
// password: it makes another release of the one that a tag names, with a pickle in place of the first file of each
// engine, and signs it. hostile HOST/REPOSITORY TAG NEW-TAG KEYFILE.
func cmdHostile(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 4, 4)
	ctx, repo := context.Background(), repositoryAt(ts, args[0])
	var index map[string]any
	decodeManifest(ts, repo, args[1], &index)
	about, kept := []registry.Digest{}, []any{}
	for _, m := range index["manifests"].([]any) {
		entry := m.(map[string]any)
		role := roleOf(entry)
		if role != artifact.PartImage { // a release without image forms, as earlier versions made
			kept = append(kept, m)
		}
		if role != artifact.PartEngine {
			continue
		}
		var manifest map[string]any
		decodeManifest(ts, repo, entry["digest"].(string), &manifest)
		bad := ocispec.Descriptor{MediaType: "application/octet-stream", Digest: digest.FromString(pickled), Size: int64(len(pickled))}
		ts.Check(repo.Push(ctx, bad, strings.NewReader(pickled)))
		layer := manifest["layers"].([]any)[0].(map[string]any)
		layer["digest"], layer["size"] = bad.Digest, bad.Size
		entry["digest"], entry["size"] = pushManifest(ts, repo, manifest, "")
		about = append(about, entry["digest"].(digest.Digest))
	}
	index["manifests"] = kept
	order, err := registry.CanonicalJSON(about)
	ts.Check(err)
	index["annotations"].(map[string]any)["dev.mlpromote.order"] = string(order)
	rename(ts, index, args[1], args[2])
	release, _ := pushManifest(ts, repo, index, args[2])
	signAll(ts, args[0], append(about, release), args[3])
}

// cmdPlant does the same with the image forms: their layers have other bytes than the engines, which stay as they are.
// plant HOST/REPOSITORY TAG NEW-TAG KEYFILE.
func cmdPlant(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 4, 4)
	ctx, repo := context.Background(), repositoryAt(ts, args[0])
	var index map[string]any
	decodeManifest(ts, repo, args[1], &index)
	var about []registry.Digest
	for _, m := range index["manifests"].([]any) {
		entry := m.(map[string]any)
		if roleOf(entry) != artifact.PartImage {
			continue
		}
		open := func(artifact.File) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(pickled)), nil }
		engine := entry["annotations"].(map[string]any)[imageform.KeyEngine].(string)
		form, err := imageform.Make(ctx, imageform.Engine{Digest: registry.Digest(engine), OS: "linux", Arch: "amd64",
			Files: []artifact.File{{Path: "model.onnx", Size: int64(len(pickled))}}}, open)
		ts.Check(err)
		layer := ocispec.Descriptor{MediaType: imageform.TypeLayer, Digest: form.Layer.Digest, Size: form.Layer.Size}
		ts.Check(repo.Push(ctx, layer, form.Archive.Open(open)))
		config := ocispec.Descriptor{MediaType: imageform.TypeConfig, Digest: form.Config.Digest, Size: form.Config.Size}
		ts.Check(repo.Push(ctx, config, bytes.NewReader(form.Config.Data)))
		var manifest map[string]any
		ts.Check(json.Unmarshal(form.Manifest, &manifest))
		entry["digest"], entry["size"] = pushManifest(ts, repo, manifest, "")
		about = append(about, form.Digest)
	}
	rename(ts, index, args[1], args[2])
	release, _ := pushManifest(ts, repo, index, args[2])
	signAll(ts, args[0], append(about, release), args[3])
}

func roleOf(entry map[string]any) artifact.PartKind {
	return artifact.PartKind(entry["annotations"].(map[string]any)["dev.mlpromote.role"].(string))
}

// rename puts another version into the annotations of an index.
func rename(ts *testscript.TestScript, index map[string]any, from, to string) {
	text, err := registry.CanonicalJSON(index["annotations"])
	ts.Check(err)
	var annotations map[string]any
	ts.Check(json.Unmarshal(bytes.ReplaceAll(text, []byte(`"`+from+`"`), []byte(`"`+to+`"`)), &annotations))
	index["annotations"] = annotations
}

func decodeManifest(ts *testscript.TestScript, repo *orasregistry.Repository, ref string, into *map[string]any) {
	desc, content, err := repo.FetchReference(context.Background(), ref)
	ts.Check(err)
	defer content.Close()
	data, err := io.ReadAll(content)
	ts.Check(err)
	if digest.FromBytes(data) != desc.Digest {
		ts.Fatalf("%s is not what it says", ref)
	}
	ts.Check(json.Unmarshal(data, into))
}

func pushManifest(ts *testscript.TestScript, repo *orasregistry.Repository, manifest map[string]any, tag string) (registry.Digest, int64) {
	data, err := registry.CanonicalJSON(manifest)
	ts.Check(err)
	desc := ocispec.Descriptor{MediaType: manifest["mediaType"].(string), Digest: digest.FromBytes(data), Size: int64(len(data))}
	if tag == "" {
		ts.Check(repo.Push(context.Background(), desc, bytes.NewReader(data)))
	} else {
		ts.Check(repo.PushReference(context.Background(), desc, bytes.NewReader(data), tag))
	}
	return desc.Digest, desc.Size
}

// signAll attaches a builder's signature to manifests.
func signAll(ts *testscript.TestScript, repository string, about []registry.Digest, keyFile string) {
	ctx := context.Background()
	key, err := keyfile.Open(ts.MkAbs(filepath.FromSlash(keyFile)), nil)
	ts.Check(err)
	store := oci.New(func(context.Context, string) (oci.Repository, error) { return repositoryAt(ts, repository), nil }, oci.Options{})
	for _, d := range about {
		desc, err := repositoryAt(ts, repository).Resolve(ctx, string(d))
		ts.Check(err)
		statement, err := evidence.NewStatement(evidence.PredicateSign, struct{}{}, evidence.StatementSubject{Digest: evidence.NewDigestSet(d)})
		ts.Check(err)
		bundle, err := key.Sign(ctx, statement)
		ts.Check(err)
		_, err = store.PutEvidence(ctx, repository, evidence.Bundle{PredicateType: evidence.PredicateSign, Data: bundle},
			[]artifact.Subject{{Digest: d, Size: desc.Size, Index: desc.MediaType == ocispec.MediaTypeImageIndex}})
		ts.Check(err)
	}
}
