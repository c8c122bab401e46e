package backup

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
	"mlpromote.dev/mlpromote/registry/composed"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// tries is how often the catalog is copied if its content is collected meanwhile. The collector
// deletes only content older than its grace period, so one attempt is enough unless the grace
// period is shorter than a copy takes.
const tries = 3

// Make adds a snapshot. Names go first, then the content that they name: what comes
// later is not in it. Content that a collector takes meanwhile is in no later copy of the
// catalog either, so such a copy is made; content that is missing nevertheless is CodeDigest,
// and nothing counts as saved. Other errors: CodeTrust for a history with a broken chain.
//
// Copies of earlier snapshots are used again. Each run reads some of them, so that in time all
// are checked, and replaces damaged ones. Recheck lists those that it could not replace.
func (s *Store) Make(ctx context.Context, from Source) (Snapshot, Recheck, error) {
	if err := s.clean(); err != nil {
		return Snapshot{}, Recheck{}, err
	}
	first, err := s.begin(ctx, from)
	if err != nil {
		return Snapshot{}, Recheck{}, err
	}
	checked, err := s.recheck(ctx, from, first.blobs)
	if err != nil {
		return Snapshot{}, checked, errors.Join(err, first.catalog.Close())
	}
	snapshot, err := s.make(ctx, from, first, checked)
	return snapshot, checked, err
}

func (s *Store) make(ctx context.Context, from Source, now attempt, checked Recheck) (Snapshot, error) {
	for tried := 1; ; tried++ {
		missing, err := s.take(ctx, now.blobs, now.inside, checked)
		stored := now.without(ctx, missing)
		if err := errors.Join(err, now.catalog.Close()); err != nil {
			return Snapshot{}, err
		}
		if len(missing) == 0 {
			return now.snapshot, s.complete(from, &now.snapshot)
		}
		if err := os.RemoveAll(s.path(now.snapshot.Name)); err != nil {
			return Snapshot{}, err
		}
		if tried == tries {
			break
		}
		if now, err = s.begin(ctx, from); err != nil {
			return Snapshot{}, err
		}
		if gone := now.stillLost(ctx, missing, stored); len(gone) > 0 {
			return Snapshot{}, errors.Join(lost(gone), now.catalog.Close())
		}
	}
	return Snapshot{}, registry.WithHint(
		registry.Errorf(registry.CodeUnavailable,
			"content was garbage collected while it was copied, %d times in a row: no snapshot was made", tries),
		"set a grace period (mlpromote serve --gc-grace) that is longer than a backup takes",
	)
}

// attempt is a snapshot whose catalog was copied.
type attempt struct {
	snapshot Snapshot
	inside   content
	catalog  Catalog       // the copy
	blobs    storage.Blobs // of the source, composed by the copy's recipes
}

// without returns those of the digests that the catalog has no recipe of.
func (a attempt) without(ctx context.Context, digests []registry.Digest) []registry.Digest {
	return slices.DeleteFunc(slices.Clone(digests), func(d registry.Digest) bool {
		_, err := a.catalog.Recipe(ctx, d)
		return err == nil
	})
}

// stillLost returns the missing digests that a later copy of the catalog also names. Those that were stored got a recipe
// meanwhile if the later copy has one: a collector has deleted their own bytes, and they can be read.
func (a attempt) stillLost(ctx context.Context, missing, stored []registry.Digest) []registry.Digest {
	unexplained := a.without(ctx, stored)
	return slices.DeleteFunc(missing, func(d registry.Digest) bool {
		_, named := a.inside[d]
		return !named || slices.Contains(stored, d) && !slices.Contains(unexplained, d)
	})
}

func lost(gone []registry.Digest) error {
	var names []string
	for _, d := range gone[:min(len(gone), 10)] {
		names = append(names, string(d))
	}
	return registry.WithHint(
		registry.Errorf(
			registry.CodeDigest,
			"%d blobs that the catalog names are missing in the storage, or do not match their digests (%s): no snapshot "+
				"was made",
			len(gone),
			strings.Join(names, ", "),
		),
		"push them again, from a backup or a node; or delete the releases that they belong to",
	)
}

// begin copies the catalog into a new snapshot and reads it. The caller closes the copy.
func (s *Store) begin(ctx context.Context, from Source) (attempt, error) {
	created := from.Now().UTC()
	a := attempt{snapshot: Snapshot{Format: Format, Name: created.Format(nameLayout), Created: created, Tool: from.Tool}}
	if err := os.MkdirAll(filepath.Join(s.Dir, snapshotsFolder), 0o700); err != nil {
		return attempt{}, err
	}
	if err := os.Mkdir(s.path(a.snapshot.Name), 0o700); err != nil {
		return attempt{}, err
	}
	path := s.path(a.snapshot.Name, catalogFile)
	if err := from.CopyCatalog(ctx, path); err != nil {
		return attempt{}, err
	}
	var err error
	if a.inside, err = s.survey(ctx, path, &a.snapshot); err != nil {
		return attempt{}, err
	}
	if err := atomicfile.Write(s.path(a.snapshot.Name, contentFile), a.inside.text(), fileMode); err != nil {
		return attempt{}, err
	}
	a.catalog, err = s.Open(ctx, path)
	a.blobs = composed.Blobs(from.Blobs, a.catalog, composed.Least)
	return a, err
}

// survey reads a copy of a catalog: its content, heads and history.
func (s *Store) survey(ctx context.Context, path string, into *Snapshot) (inside content, err error) {
	catalog, err := s.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, catalog.Close()) }()
	heads, err := catalog.Heads(ctx, "", "")
	if err != nil {
		return nil, err
	}
	into.Heads = len(heads)
	var last history.Event
	for e, err := range catalog.History(ctx, history.HistoryQuery{}) {
		if err != nil {
			return nil, err
		}
		if err := e.VerifyChain(last); err != nil {
			return nil, err
		}
		last = e
	}
	into.Events, into.Last = last.Seq, last.Hash
	inside, err = named(ctx, catalog)
	into.Blobs, into.Bytes = len(inside), inside.bytes()
	return inside, err
}

// take copies content and returns the blobs that it could not copy.
func (s *Store) take(
	ctx context.Context,
	from storage.Blobs,
	inside content,
	checked Recheck,
) (missing []registry.Digest, err error) {
	var done int64
	for _, d := range inside.digests() {
		var err error
		if slices.Contains(checked.Damaged, d) {
			missing = append(missing, d)
		} else {
			err = s.takeOne(ctx, from, d, inside[d])
		}
		switch {
		case registry.HasCode(err, registry.CodeNotFound) || registry.HasCode(err, registry.CodeDigest):
			missing = append(missing, d)
		case err != nil:
			return nil, err
		}
		done += inside[d]
		s.progress(done, inside.bytes())
	}
	return missing, nil
}

func (s *Store) takeOne(ctx context.Context, from storage.Blobs, d registry.Digest, size int64) error {
	if have, n, err := s.Blobs.Open(ctx, d); err == nil {
		if err := have.Close(); err != nil || n == size {
			return err
		}
	}
	blob, _, err := from.Open(ctx, d)
	if err != nil {
		return err
	}
	return errors.Join(s.Blobs.Put(ctx, d, size, blob), blob.Close())
}

func (s *Store) progress(done, total int64) {
	if s.Progress != nil {
		s.Progress(done, total)
	}
}

// complete copies the files and finally writes snapshot.json.
func (s *Store) complete(from Source, snapshot *Snapshot) error {
	inside, err := s.files(from, snapshot.Name)
	if err != nil {
		return err
	}
	snapshot.Files = inside
	text, err := json.MarshalIndent(snapshot, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(atomicfile.SyncDir(filepath.Join(s.Dir, snapshotsFolder)), atomicfile.SyncDir(s.Dir),
		atomicfile.Write(s.path(snapshot.Name, snapshotFile), append(text, '\n'), fileMode))
}

// files copies the files of the operator and describes them, the catalog and the list of the
// content.
func (s *Store) files(from Source, name string) ([]File, error) {
	var all []File
	for _, file := range from.Files {
		inside := path.Join(filesFolder, file)
		size, d, err := copyFile(filepath.Join(from.Dir, filepath.FromSlash(file)), s.path(name, filepath.FromSlash(inside)))
		if err != nil {
			return nil, err
		}
		all = append(all, File{inside, size, d})
	}
	for _, file := range []string{catalogFile, contentFile} {
		f, err := describe(s.path(name, file))
		if err != nil {
			return nil, err
		}
		f.Path = file
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// clean deletes unfinished snapshots.
func (s *Store) clean() error {
	names, err := s.names()
	for _, name := range names {
		if _, err := os.Stat(s.path(name, snapshotFile)); errors.Is(err, fs.ErrNotExist) {
			if err := os.RemoveAll(s.path(name)); err != nil {
				return err
			}
		}
	}
	return err
}
