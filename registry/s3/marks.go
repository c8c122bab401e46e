package s3

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

var (
	_ storage.ContentMarks = (*Bucket)(nil)
	_ storage.ReplicaPlace = (*Bucket)(nil)
)

const (
	// maxMarkBytes bounds how much of a mark is read.
	maxMarkBytes = 64 << 10

	// maxFolders bounds the search for marks of other registries. A registry itself has a
	// handful of folders below its prefix.
	maxFolders = 1000
)

// ContentMark reads the object that names the owner of the content. Its tag is the ETag.
func (b *Bucket) ContentMark(ctx context.Context) (*storage.ContentMark, string, error) {
	key := path.Join(b.prefix, storage.ContentMarkName)
	stream, info, _, err := b.core.GetObject(ctx, b.name, key, minio.GetObjectOptions{})
	if saidCode(err, minio.NoSuchKey) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", b.interpretError("read", key, err)
	}
	defer stream.Close()
	text, err := io.ReadAll(io.LimitReader(stream, maxMarkBytes))
	if err != nil {
		return nil, "", b.interpretError("read", key, err)
	}
	var m storage.ContentMark
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, "", registry.Errorf(registry.CodeInvalid,
			"%s in %s cannot be read, so the owner of the content is unknown: %w", storage.ContentMarkName, b, err)
	}
	return &m, info.ETag, nil
}

// SetContentMark writes the object with a conditional request. If several processes write the
// first mark, the store lets one succeed. The first write also tests that the store does so.
func (b *Bucket) SetContentMark(ctx context.Context, m storage.ContentMark, tag string) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := b.putMark(ctx, text, tag); err != nil || tag != "" {
		return err
	}
	err = b.putMark(ctx, text, "")
	if registry.HasCode(err, registry.CodeConflict) {
		return nil
	}
	return errors.Join(err, registry.WithHint(
		registry.Errorf(
			registry.CodeUnavailable,
			"the object store of %s ignores If-None-Match: * and replaced an existing object; two registries could claim the "+
				"same content",
			b,
		),
		"use a store with conditional writes: see docs/object-storage.md"))
}

func (b *Bucket) putMark(ctx context.Context, text []byte, tag string) error {
	options := minio.PutObjectOptions{DisableContentSha256: true, ContentType: "application/json"}
	if tag == "" {
		options.SetMatchETagExcept("*")
	} else {
		options.SetMatchETag(tag)
	}
	key := path.Join(b.prefix, storage.ContentMarkName)
	_, err := b.core.PutObject(ctx, b.name, key, strings.NewReader(string(text)), int64(len(text)), "", signed(text),
		options)
	answer, ok := response(err)
	if ok &&
		(answer.StatusCode == http.StatusPreconditionFailed || answer.StatusCode == http.StatusConflict || answer.Code == minio.NoSuchKey) {
		return registry.Errorf(registry.CodeConflict,
			"%s: another process changed %s meanwhile; try again", b, storage.ContentMarkName)
	}
	return b.interpretError("write", key, err)
}

// DeleteContentMark compares the tag, then deletes. Stores with conditional writes need not
// have conditional deletions, so a mark written in between is lost. Call it only to take back
// a mark that was just made and that no process relies on yet.
func (b *Bucket) DeleteContentMark(ctx context.Context, tag string) error {
	_, have, err := b.ContentMark(ctx)
	if err != nil {
		return err
	}
	if have != tag {
		return registry.Errorf(registry.CodeConflict, "%s: another process changed %s meanwhile", b, storage.ContentMarkName)
	}
	key := path.Join(b.prefix, storage.ContentMarkName)
	return b.interpretError("delete", key, b.remove(ctx, key))
}

// Overlaps looks for marks in every prefix that contains this one, and in every folder below
// it except those that only this program writes. It stops at the first that it finds.
func (b *Bucket) Overlaps(ctx context.Context) ([]string, error) {
	for inside := b.prefix; inside != ""; {
		inside, _ = cutLast(inside)
		_, err := b.size(ctx, path.Join(inside, storage.ContentMarkName))
		if err == nil {
			return []string{b.nameOf(inside)}, nil
		}
		if !saidCode(err, minio.NoSuchKey) {
			return nil, b.interpretError("look for", storage.ContentMarkName, err)
		}
	}
	folders := []string{""}
	if b.prefix != "" {
		folders[0] = b.prefix + "/"
	}
	for n := 0; n < len(folders); n++ {
		if n == maxFolders {
			return nil, registry.WithHint(
				registry.Errorf(registry.CodeInvalid,
					"%s has more than %d folders that this registry did not make, too many to search for another registry",
					b, maxFolders),
				"use a bucket or prefix that nothing else uses")
		}
		found, inside, err := b.lookInto(ctx, folders[n])
		if found || err != nil {
			return []string{b.nameOf(strings.TrimSuffix(folders[n], "/"))}, err
		}
		folders = append(folders, inside...)
	}
	return nil, nil
}

// cutLast cuts the last component off a prefix.
func cutLast(prefix string) (before, last string) {
	n := strings.LastIndexByte(prefix, '/')
	return prefix[:max(n, 0)], prefix[n+1:]
}

// lookInto reports whether a folder has the mark of another registry, and lists the folders in
// it that may have one.
func (b *Bucket) lookInto(ctx context.Context, folder string) (found bool, inside []string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	own := path.Join(b.prefix, storage.ContentMarkName)
	for o := range b.core.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: folder}) {
		switch {
		case o.Err != nil:
			return false, nil, b.interpretError("list", folder, o.Err)
		case o.Key == folder+storage.ContentMarkName && o.Key != own:
			return true, nil, nil
		case strings.HasSuffix(o.Key, "/") && o.Key != folder && !b.isOwnFolder(o.Key):
			inside = append(inside, o.Key)
		}
	}
	return false, inside, ctx.Err()
}

// nameOf is the URL of a prefix, without options.
func (b *Bucket) nameOf(prefix string) string {
	return Config{Bucket: b.name, Prefix: prefix}.String()
}

// SetReplicaMark writes the object of a replica.
func (b *Bucket) SetReplicaMark(ctx context.Context, name string, seen time.Time) error {
	key := b.under(replicaFolder) + name
	return b.interpretError("write", key, b.write(ctx, key, []byte(seen.UTC().Format(time.RFC3339Nano))))
}

// ReplicaMark reads the object of a replica.
func (b *Bucket) ReplicaMark(ctx context.Context, name string) (time.Time, error) {
	key := b.under(replicaFolder) + name
	stream, _, _, err := b.core.GetObject(ctx, b.name, key, minio.GetObjectOptions{})
	if saidCode(err, minio.NoSuchKey) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, b.interpretError("read", key, err)
	}
	defer stream.Close()
	text, err := io.ReadAll(io.LimitReader(stream, maxMarkBytes))
	if err != nil {
		return time.Time{}, b.interpretError("read", key, err)
	}
	seen, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return time.Time{}, registry.Errorf(registry.CodeInvalid, "%s in %s: want a time, found %.100q: delete the object", key, b, text)
	}
	return seen, nil
}

// DeleteReplicaMark deletes the object of a replica.
func (b *Bucket) DeleteReplicaMark(ctx context.Context, name string) error {
	key := b.under(replicaFolder) + name
	return b.interpretError("delete", key, b.remove(ctx, key))
}
