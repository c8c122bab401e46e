package service_test

import (
	"context"
	"io"
	"iter"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// touchRecord notes that a call asked for a record, which unmarks it.
func touchRecord(s *strand, db *mem.DB, repository string, key storage.GCRecordKey) {
	if s != nil {
		h, _ := db.Record(repository, key)
		s.readOrWrite("records "+repository, recordItem(key), !h.Marked.IsZero())
	}
}

func recordItem(key storage.GCRecordKey) string {
	if key.Manifest {
		return "manifest " + string(key.Digest)
	}
	return "blob " + string(key.Digest)
}

// putRecord notes that a call put a record.
func putRecord(s *strand, db *mem.DB, repository string, key storage.GCRecordKey) {
	if s == nil {
		return
	}
	h, there := db.Record(repository, key)
	s.readOrWrite("records "+repository, recordItem(key), !there || !h.Marked.IsZero())
	s.readOrWrite("held", string(key.Digest), !db.IsHeld(key.Digest))
	if repositories, _ := db.Repositories(context.Background()); !slices.Contains(repositories, repository) {
		s.write("repositories", repository)
	}
}

// tracedRefs is names of which every call is a step.
type tracedRefs struct{ *mem.DB }

func (r tracedRefs) AddBlob(ctx context.Context, repository string, d registry.Digest, size int64) (err error) {
	s := strandOf(ctx)
	s.step("AddBlob "+repository, func() {
		putRecord(s, r.DB, repository, storage.GCRecordKey{Digest: d})
		err = r.DB.AddBlob(ctx, repository, d, size)
	})
	return err
}

func (r tracedRefs) Blob(ctx context.Context, repository string, d registry.Digest) (size int64, err error) {
	s := strandOf(ctx)
	s.step("Blob "+repository, func() {
		touchRecord(s, r.DB, repository, storage.GCRecordKey{Digest: d})
		size, err = r.DB.Blob(ctx, repository, d)
	})
	return size, err
}

func (r tracedRefs) PutManifest(ctx context.Context, repository string, m storage.Manifest, tags ...string) (err error) {
	s := strandOf(ctx)
	s.step("PutManifest "+repository, func() {
		_, there := r.DB.Record(repository, storage.GCRecordKey{Digest: m.Digest, Manifest: true})
		putRecord(s, r.DB, repository, storage.GCRecordKey{Digest: m.Digest, Manifest: true})
		if m.Derived.Subject != "" && s != nil {
			s.readOrWrite("referrers "+repository, string(m.Derived.Subject), !there)
		}
		for _, tag := range tags {
			s.write("tags "+repository, tag)
		}
		err = r.DB.PutManifest(ctx, repository, m, tags...)
	})
	return err
}

func (r tracedRefs) Manifest(ctx context.Context, repository string, d registry.Digest) (m storage.Manifest, err error) {
	s := strandOf(ctx)
	s.step("Manifest "+repository, func() {
		touchRecord(s, r.DB, repository, storage.GCRecordKey{Digest: d, Manifest: true})
		m, err = r.DB.Manifest(ctx, repository, d)
	})
	return m, err
}

func (r tracedRefs) Referrers(
	ctx context.Context, repository string, d registry.Digest, artifactType string, after registry.Digest,
) (found []storage.Manifest, err error) {
	s := strandOf(ctx)
	s.step("Referrers "+repository, func() {
		s.read("referrers "+repository, string(d))
		found, err = r.DB.Referrers(ctx, repository, d, artifactType, after)
	})
	return found, err
}

func (r tracedRefs) Tag(ctx context.Context, repository, tag string) (d registry.Digest, err error) {
	s := strandOf(ctx)
	s.step("Tag "+repository+" "+tag, func() {
		s.read("tags "+repository, tag)
		d, err = r.DB.Tag(ctx, repository, tag)
	})
	return d, err
}

func (r tracedRefs) SetTag(ctx context.Context, repository, tag string, d registry.Digest) (err error) {
	s := strandOf(ctx)
	s.step("SetTag "+repository+" "+tag, func() {
		if s != nil {
			have, _ := r.DB.Tag(ctx, repository, tag)
			s.readOrWrite("tags "+repository, tag, have != d)
		}
		touchRecord(s, r.DB, repository, storage.GCRecordKey{Digest: d, Manifest: true})
		err = r.DB.SetTag(ctx, repository, tag, d)
	})
	return err
}

// tracedMirror is a mirror of which every call about the tag of the head is one step. Those
// about other tags, which must not move, are part of the step before: whoever sets one sets it
// to the same, so that their order makes no difference.
type tracedMirror struct{ backend.Mirror }

// tagStep makes a call about a tag.
func tagStep(ctx context.Context, name, tag string, do func()) {
	if tag != artifact.HeadTag {
		strandOf(ctx).unseen(do)
		return
	}
	strandOf(ctx).step(name+" "+tag, do)
}

func (m tracedMirror) Relist(ctx context.Context, repository string, d registry.Digest) (err error) {
	strandOf(ctx).step("Relist "+repository, func() { err = m.Mirror.Relist(ctx, repository, d) })
	return err
}

func (m tracedMirror) Tag(ctx context.Context, repository, tag string) (d registry.Digest, err error) {
	tagStep(ctx, "mirrored tag", tag, func() { d, err = m.Mirror.Tag(ctx, repository, tag) })
	return d, err
}

func (m tracedMirror) SetTag(ctx context.Context, repository, tag string, d registry.Digest) (err error) {
	tagStep(ctx, "mirror tag", tag, func() { err = m.Mirror.SetTag(ctx, repository, tag, d) })
	return err
}

// tracedBlobs is bytes of which every call is a step.
type tracedBlobs struct{ *mem.Blobs }

func (b tracedBlobs) Put(ctx context.Context, d registry.Digest, size int64, r io.Reader) (err error) {
	s := strandOf(ctx)
	s.step("Put", func() {
		s.readOrWrite("bytes", string(d), !b.has(ctx, d))
		err = b.Blobs.Put(ctx, d, size, r)
	})
	return err
}

func (b tracedBlobs) has(ctx context.Context, d registry.Digest) bool {
	_, _, err := b.Blobs.Open(ctx, d)
	return err == nil
}

func (b tracedBlobs) Open(ctx context.Context, d registry.Digest) (blob storage.Blob, size int64, err error) {
	s := strandOf(ctx)
	s.step("Open", func() {
		s.read("bytes", string(d))
		blob, size, err = b.Blobs.Open(ctx, d)
	})
	return blob, size, err
}

// Digests are in byte order here, so that a schedule can be repeated.
func (b tracedBlobs) Digests(ctx context.Context) iter.Seq2[registry.Digest, error] {
	s := strandOf(ctx)
	return inOneStep(s, "Digests", func() { s.read("bytes", "") }, inOrder(b.Blobs.Digests(ctx)))
}

// inOrder sorts a sequence of digests.
func inOrder(seq iter.Seq2[registry.Digest, error]) iter.Seq2[registry.Digest, error] {
	return func(yield func(registry.Digest, error) bool) {
		var all []registry.Digest
		for d, err := range seq {
			if err != nil {
				yield("", err)
				return
			}
			all = append(all, d)
		}
		slices.SortFunc(all, func(a, b registry.Digest) int { return strings.Compare(string(a), string(b)) })
		for _, d := range all {
			if !yield(d, nil) {
				return
			}
		}
	}
}
