package scrub

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// typeIndex is the media type of releases. It also identifies releases whose bytes can no
// longer be read.
const typeIndex = "application/vnd.oci.image.index.v1+json"

// maxAffected bounds how many affected releases one damage lists.
const maxAffected = 100

// affected returns the releases that need a digest: in each repository with it, those whose
// index refers to it directly or through other manifests. Unreadable manifests are skipped.
func (s *Scrubber) affected(ctx context.Context, d registry.Digest, repositories []string) ([]storage.AffectedRelease, error) {
	heads, err := s.Catalog.Heads(ctx, "", "")
	if err != nil {
		return nil, err
	}
	var all []storage.AffectedRelease
	for _, repository := range repositories {
		model, sources := registry.ModelOf(repository)
		if sources {
			continue // nodes do not need sources, and their releases are in other repositories
		}
		environment, _, _ := strings.Cut(repository, "/")
		releases, err := s.releasesWith(ctx, repository, d)
		if err != nil {
			return nil, err
		}
		for _, r := range releases {
			r.Environment, r.Model = environment, model
			r.Head = slices.ContainsFunc(heads, func(h history.Head) bool {
				return h.Environment == environment && h.Model == model && h.Release == r.Release
			})
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b storage.AffectedRelease) int { return cmp.Compare(rank(a), rank(b)) })
	return all[:min(len(all), maxAffected)], nil
}

// rank puts heads first.
func rank(r storage.AffectedRelease) int {
	if r.Head {
		return 0
	}
	return 1
}

// releasesWith returns the releases of a repository that refer to a digest.
func (s *Scrubber) releasesWith(ctx context.Context, repository string, d registry.Digest) ([]storage.AffectedRelease, error) {
	held, err := s.Store.Records(ctx, repository)
	if err != nil {
		return nil, err
	}
	parents := make(map[registry.Digest][]registry.Digest) // the manifests that mention a digest
	isRelease := make(map[registry.Digest]bool)
	for _, h := range held {
		if !h.Manifest {
			continue
		}
		raw, ok := s.manifest(ctx, h)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		links, err := artifact.ManifestLinks(raw)
		if !ok || err != nil {
			isRelease[h.Digest] = h.Digest == d && h.MediaType == typeIndex && len(h.Tags) > 0
			continue
		}
		var document struct {
			ArtifactType string `json:"artifactType"`
		}
		isRelease[h.Digest] = json.Unmarshal(raw, &document) == nil && document.ArtifactType == artifact.ReleaseType
		for _, child := range links.Mentions {
			parents[child] = append(parents[child], h.Digest)
		}
	}
	reached := reach(d, parents)
	var found []storage.AffectedRelease
	for _, h := range held {
		if h.Manifest && reached[h.Digest] && isRelease[h.Digest] {
			tags := slices.DeleteFunc(slices.Clone(h.Tags), func(tag string) bool { return tag == artifact.HeadTag })
			found = append(found, storage.AffectedRelease{Release: h.Digest, Tags: tags})
		}
	}
	return found, nil
}

// reach returns a digest and everything that refers to it.
func reach(d registry.Digest, parents map[registry.Digest][]registry.Digest) map[registry.Digest]bool {
	reached := map[registry.Digest]bool{d: true}
	for next := []registry.Digest{d}; len(next) > 0; {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		for _, parent := range parents[at] {
			if !reached[parent] {
				reached[parent] = true
				next = append(next, parent)
			}
		}
	}
	return reached
}

// manifest reads a manifest. ok is false if its bytes do not match its digest.
func (s *Scrubber) manifest(ctx context.Context, h storage.GCRecord) ([]byte, bool) {
	blob, _, err := s.Blobs.Open(ctx, h.Digest)
	if err != nil {
		return nil, false
	}
	defer blob.Close()
	raw := bytes.NewBuffer(nil)
	if _, err := io.CopyN(raw, blob, h.Size+1); err == nil { // it is longer than recorded
		return nil, false
	}
	return raw.Bytes(), h.Digest.Algorithm().FromBytes(raw.Bytes()) == h.Digest
}
