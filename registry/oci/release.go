package oci

import (
	"context"
	"strconv"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Release reads a release with the manifests of its engines, limits and interface.
// Errors: see [storage.Content].
func (s *Store) Release(ctx context.Context, name, tagOrDigest string) (artifact.Release, error) {
	repo, err := s.repository(ctx, name)
	if err != nil {
		return artifact.Release{}, err
	}
	_, r, err := repo.release(ctx, tagOrDigest)
	return r, err
}

// release reads a release, and also returns its tree.
func (r repository) release(ctx context.Context, tagOrDigest string) (tree, artifact.Release, error) {
	t, err := r.tree(ctx, "release", typeRelease, tagOrDigest)
	if err != nil {
		return tree{}, artifact.Release{}, err
	}
	release, err := t.release()
	if err != nil {
		return tree{}, artifact.Release{}, r.about("release", t.desc.Digest, err)
	}
	return t, release, nil
}

// Engine reads one engine. Errors: see [storage.Content].
func (s *Store) Engine(ctx context.Context, name string, d registry.Digest) (artifact.Engine, error) {
	repo, err := s.repository(ctx, name)
	if err != nil {
		return artifact.Engine{}, err
	}
	desc, err := repo.resolve(ctx, "engine", string(d))
	if err != nil {
		return artifact.Engine{}, err
	}
	var p part
	if desc.MediaType == ocispec.MediaTypeImageManifest {
		p, err = repo.part(ctx, desc)
	}
	if err == nil && p.role != artifact.PartEngine || registry.CodeOf(err) == registry.CodeInvalid && err != nil {
		return artifact.Engine{}, registry.Errorf(registry.CodeNotFound, "%s: %s is not an engine", name, d)
	}
	return p.engine, err
}

// release converts the tree of a release.
func (t tree) release() (artifact.Release, error) {
	annotations := t.index.Annotations
	r := artifact.Release{
		Digest:  t.desc.Digest,
		Size:    t.desc.Size,
		Model:   annotations[keyModel],
		Version: annotations[keyVersion],
		Sources: registry.Digest(annotations[keySources]),
		Plan:    registry.Digest(annotations[keyPlan]),
		Part:    registry.Digest(annotations[keyPart]),
	}
	_, isPart := annotations[keyPart]
	if err := readIdentity(&r, annotations[keyRevision], isPart); err != nil {
		return r, err
	}
	var images []part
	for _, p := range t.parts {
		switch {
		case p.role == artifact.PartEngine:
			r.Engines = append(r.Engines, p.engine)
		case p.role == artifact.PartImage:
			images = append(images, p)
		case p.role == artifact.PartLimits && r.Limits == "":
			r.Limits = p.desc.Digest
		case p.role == artifact.PartInterface && r.Interface == "":
			r.Interface = p.desc.Digest
		default:
			return r, registry.Errorf(registry.CodeInvalid, "it has more than one entry with the role %s: want one", p.role)
		}
	}
	if err := setImages(&r, images); err != nil {
		return r, err
	}
	if err := checkRelease(r); err != nil {
		return r, err
	}
	return r, readOrder(&r, annotations[keyOrder])
}

// readOrder reads the annotation with the order in which nodes get the engines: each engine once. Errors: CodeInvalid.
func readOrder(r *artifact.Release, value string) error {
	if value == "" {
		return registry.Errorf(registry.CodeInvalid, "it has no annotation %s, which decides the engine that a node gets: build it again", keyOrder)
	}
	if err := decode([]byte(value), &r.Order); err != nil {
		return registry.Errorf(registry.CodeInvalid, "annotation %s is %.100q: want a list of the digests of its engines: %w", keyOrder, value, err)
	}
	left := make(map[registry.Digest]bool, len(r.Engines))
	for _, e := range r.Engines {
		left[e.Digest] = true
	}
	for _, d := range r.Order {
		if !left[d] {
			return registry.Errorf(registry.CodeInvalid, "annotation %s names %.100q, which is no engine of it or is named twice: want each engine once", keyOrder, d)
		}
		delete(left, d)
	}
	for _, e := range r.Engines {
		if left[e.Digest] {
			return registry.Errorf(registry.CodeInvalid, "annotation %s does not name the engine %s %s: want each engine once", keyOrder, e.Label(), e.Digest)
		}
	}
	return nil
}

// readIdentity reads and checks the annotations of a release, or of a part of one.
func readIdentity(r *artifact.Release, revision string, part bool) error {
	if err := registry.ValidateModel(r.Model); err != nil {
		return err
	}
	if err := registry.ValidateVersion(r.Version); err != nil {
		return err
	}
	n, err := strconv.Atoi(revision)
	if err != nil || n < 1 || strconv.Itoa(n) != revision {
		return registry.Errorf(registry.CodeInvalid, "annotation %s is %q: want a number from 1", keyRevision, revision)
	}
	r.Revision = n
	if err := r.Sources.Validate(); err != nil {
		return registry.Errorf(registry.CodeInvalid, "annotation %s: digest %q: %w", keySources, r.Sources, err)
	}
	if err := r.Plan.Validate(); err != nil {
		return registry.Errorf(registry.CodeInvalid, "annotation %s: digest %q: %w", keyPlan, r.Plan, err)
	}
	if err := r.Part.Validate(); part && err != nil {
		return registry.Errorf(registry.CodeInvalid, "annotation %s: digest %q: %w", keyPart, r.Part, err)
	}
	return nil
}

// checkRelease checks that the parts of a release belong together and can be distinguished.
func checkRelease(r artifact.Release) error {
	switch {
	case r.Limits == "" || r.Interface == "":
		return registry.Errorf(registry.CodeInvalid, "limits or interface is missing: want one entry of each")
	case len(r.Engines) == 0:
		return registry.Errorf(registry.CodeInvalid, "it has no engine")
	case len(r.Subjects()) > artifact.MaxSubjects:
		return registry.Errorf(registry.CodeInvalid, "it has %d engines, and with their image forms and itself %d subjects of its summary: at most %d are read",
			len(r.Engines), len(r.Subjects()), artifact.MaxSubjects)
	}
	type identity struct{ label, toolchain, version string }
	seen := make(map[identity]registry.Digest, len(r.Engines))
	for _, e := range r.Engines {
		for _, named := range []struct {
			key       string
			got, want registry.Digest
		}{{keySources, e.Sources, r.Sources}, {keyLimits, e.Limits, r.Limits}, {keyInterface, e.Interface, r.Interface}} {
			if named.got != named.want {
				return registry.Errorf(registry.CodeTrust,
					"engine %s %s was made for another release: its %s is %s and the release's is %s", e.Label(), e.Digest, named.key, named.got, named.want)
			}
		}
		id := identity{e.Label(), e.Toolchain.Name, e.Toolchain.Version}
		if other, ok := seen[id]; ok {
			return registry.Errorf(registry.CodeInvalid,
				"engines %s and %s are both %s by %s %s: they cannot be distinguished", other, e.Digest, id.label, id.toolchain, id.version)
		}
		seen[id] = e.Digest
	}
	return nil
}
