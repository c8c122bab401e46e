package oci

import (
	"context"
	"io"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Copy copies a release and evidence about it to the repository to: first blobs, then
// manifests, then the index, then evidence, so that nothing is stored before the content that it refers to.
// If the destination is a Mounter, Copy mounts blobs without reading their bytes; use
// [Store.Rehash] to check them. At the end it looks up everything in the destination. An
// interrupted copy can be repeated. Errors: CodeNotFound, CodeInvalid, CodeTrust, CodeDigest
// from reading; CodeInvalid for evidence about something else; CodeInternal if the destination
// accepted content but does not return it, and CodeConflict if that is a referrer.
func (s *Store) Copy(ctx context.Context, from, to string, r artifact.Release, evidence []registry.Digest) error {
	src, err := s.repository(ctx, from)
	if err != nil {
		return err
	}
	dst, err := s.repository(ctx, to)
	if err != nil {
		return err
	}
	c, err := src.copyPlan(ctx, r, evidence)
	if err != nil {
		return err
	}
	for _, b := range c.blobs.objects {
		if err := copyBlob(ctx, src, dst, b); err != nil {
			return err
		}
	}
	for _, m := range c.manifests {
		if err := dst.push(ctx, m.what, m.desc, m.raw); err != nil {
			return err
		}
	}
	for _, e := range c.evidence {
		if err := dst.attach(ctx, e); err != nil {
			return err
		}
	}
	return dst.holds(ctx, c)
}

// copyPlan lists everything that a copy moves, in the order in which it is stored.
type copyPlan struct {
	blobs     *blobSet
	manifests []document
	evidence  []attached
}

// copyPlan reads what will be copied.
func (r repository) copyPlan(ctx context.Context, release artifact.Release, evidence []registry.Digest) (copyPlan, error) {
	t, read, err := r.release(ctx, string(release.Digest))
	if err != nil {
		return copyPlan{}, err
	}
	c := copyPlan{blobs: t.blobs(), manifests: t.manifests()}
	about := make(map[registry.Digest]bool)
	for _, subject := range read.Subjects() {
		about[subject.Digest] = true
	}
	for _, d := range evidence {
		desc, err := r.resolve(ctx, "evidence", string(d))
		if err != nil {
			return copyPlan{}, err
		}
		e, _, ok, err := r.wholeEvidence(ctx, desc)
		if err != nil {
			return copyPlan{}, err
		}
		if !ok || !about[e.subject] {
			return copyPlan{}, registry.Errorf(registry.CodeInvalid,
				"%s: %s is not a complete piece of evidence about release %s or an engine of it", r.name, d, read.Digest)
		}
		c.blobs.add("bundle of evidence "+string(d), e.blob)
		c.blobs.add("config of evidence "+string(d), e.config)
		c.evidence = append(c.evidence, attached{e.document, e.subject})
	}
	return c, nil
}

// copyBlob copies a blob to dst, unless it exists there.
func copyBlob(ctx context.Context, src, dst repository, b object) error {
	there, err := dst.has(ctx, b.what, b.desc)
	if err != nil || there {
		return err
	}
	open := func() (io.ReadCloser, error) { return src.stream(ctx, b.what, b.desc) }
	if mounter, ok := dst.Repository.(Mounter); ok {
		if err := mounter.Mount(ctx, b.desc, src.name, open); err != nil {
			return dst.failed("mount", b.what, string(b.desc.Digest), err)
		}
		return nil
	}
	return dst.send(ctx, b.what, b.desc, open)
}

// holds looks up everything that was copied.
func (r repository) holds(ctx context.Context, c copyPlan) error {
	for _, b := range c.blobs.objects {
		there, err := r.has(ctx, b.what, b.desc)
		if err != nil {
			return err
		}
		if !there {
			return r.missing(b)
		}
	}
	for _, m := range c.manifests {
		if err := r.holdsManifest(ctx, m); err != nil {
			return err
		}
	}
	for _, e := range c.evidence {
		if err := r.holdsManifest(ctx, e.document); err != nil {
			return err
		}
		listed, err := r.lists(ctx, e)
		if err != nil {
			return err
		}
		if !listed {
			return registry.Errorf(registry.CodeConflict,
				"%s: evidence %s was stored, but is no longer listed among the referrers of %s: another client changed the list; run it again",
				r.name, e.desc.Digest, e.subject)
		}
	}
	return nil
}

// holdsManifest compares a manifest's descriptor and bytes with what was copied.
func (r repository) holdsManifest(ctx context.Context, m document) error {
	desc, err := r.resolve(ctx, m.what, string(m.desc.Digest))
	if err != nil {
		return err
	}
	if desc.MediaType != m.desc.MediaType || desc.Size != m.desc.Size {
		return registry.Errorf(registry.CodeDigest,
			"%s: %s %s was copied as a %q of %d bytes and is there as a %q of %d bytes", r.name,
			m.what, m.desc.Digest, m.desc.MediaType, m.desc.Size, desc.MediaType, desc.Size)
	}
	_, err = r.read(ctx, m.what, desc)
	return err
}
