package toolchain

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"mlpromote.dev/mlpromote/registry"
)

// Store is a directory of finished steps: objects/ has files by digest, steps/ has one record
// for each key, locks/ has the lock files of steps. Files are written under another name,
// flushed and renamed, so that several processes may share a store and a crash leaves no
// partial file. A file that does not match its digest counts as missing and is deleted. The
// time of a step's last use is the modification time of its record.
type Store struct{ dir string }

var _ Steps = (*Store)(nil)

// NewStore returns the store in dir. Save creates dir if necessary.
func NewStore(dir string) *Store { return &Store{dir} }

// Load puts the files of a step into outDir, as [Steps] describes.
func (s *Store) Load(ctx context.Context, key registry.Digest, outDir string) (Outcome, error) {
	defer s.hold(ctx)()
	record, err := s.record(key)
	if err != nil {
		return Outcome{}, err
	}
	outcome := record.outcome()
	if err := os.MkdirAll(outDir, 0o777); err != nil {
		return Outcome{}, err
	}
	for _, f := range record.Files {
		path := filepath.Join(outDir, filepath.FromSlash(f.Name))
		err := ctx.Err()
		if err == nil {
			err = s.fetch(f, path)
		}
		if err != nil {
			return Outcome{}, errors.Join(err, s.discard(outcome, err))
		}
		outcome.Files = append(outcome.Files, OutputFile{f.Name, path, f.Digest, f.Size})
	}
	now := time.Now()
	_ = os.Chtimes(s.stepPath(key), now, now) // a read-only store is not pruned by last use
	return outcome, nil
}

// Save stores an outcome under its Key. It hashes the files again.
func (s *Store) Save(ctx context.Context, about About, outcome Outcome) error {
	defer s.hold(ctx)()
	for _, f := range outcome.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.keep(f); err != nil {
			return err
		}
	}
	text, err := seal(newRecord(about, outcome))
	if err != nil {
		return err
	}
	return writeFile(s.stepPath(outcome.Key), text)
}

// hold keeps other processes from pruning the store until it is released. A read-only store is
// not pruned.
func (s *Store) hold(ctx context.Context) (release func()) {
	unlock, err := LockFile(ctx, s.lockPath(), false, nil)
	if err != nil {
		return func() {}
	}
	return unlock
}

// lock keeps other processes from doing the same step.
func (s *Store) lock(ctx context.Context, key registry.Digest) (unlock func(), err error) {
	return LockFile(ctx, filepath.Join(s.dir, "locks", key.Encoded()), true, nil)
}

// record reads and checks the record of a key. It removes a damaged record.
func (s *Store) record(key registry.Digest) (step, error) {
	if err := key.Validate(); err != nil {
		return step{}, registry.Errorf(registry.CodeInvalid, "step %q: %w", key, err)
	}
	missing := registry.Errorf(registry.CodeNotFound, "step %s is not in the build cache", key)
	text, err := os.ReadFile(s.stepPath(key))
	if errors.Is(err, fs.ErrNotExist) {
		return step{}, missing
	}
	if err != nil {
		return step{}, err
	}
	record, ok := unseal(text)
	if !ok || record.Key != key {
		return step{}, errors.Join(missing, os.Remove(s.stepPath(key)))
	}
	return record, nil
}

// discard removes what Load has copied so far. If the store was damaged, it also removes the
// record, so that the step is done again.
func (s *Store) discard(partial Outcome, reason error) error {
	var errs []error
	for _, f := range partial.Files {
		errs = append(errs, remove(f.Path))
	}
	if registry.HasCode(reason, registry.CodeNotFound) {
		errs = append(errs, remove(s.stepPath(partial.Key)))
	}
	return errors.Join(errs...)
}

func (s *Store) stepPath(key registry.Digest) string {
	return filepath.Join(s.dir, "steps", key.Encoded()[:2], key.Encoded()+".json")
}

func (s *Store) objectPath(d registry.Digest) string {
	return filepath.Join(s.dir, "objects", d.Encoded()[:2], d.Encoded())
}

func (s *Store) lockPath() string { return filepath.Join(s.dir, "lock") }

// fetch puts an object at path. It removes a damaged object. A missing or damaged object gives
// CodeNotFound.
func (s *Store) fetch(f stepFile, path string) error {
	object := s.objectPath(f.Digest)
	d, size, err := HashFile(object)
	if errors.Is(err, fs.ErrNotExist) {
		return registry.Errorf(registry.CodeNotFound, "build cache: %s (%s) is missing", f.Name, f.Digest)
	}
	if err != nil {
		return err
	}
	if d != f.Digest || size != f.Size {
		return errors.Join(remove(object),
			registry.Errorf(registry.CodeNotFound,
				"build cache: %s is damaged: want %s, %d bytes; got %s, %d bytes", f.Name, f.Digest, f.Size, d, size))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return Place(object, path)
}

// keep copies a file into the store. It replaces an existing object, which may be the damaged
// one because of which the step was done again.
func (s *Store) keep(f OutputFile) error {
	d, size, err := HashFile(f.Path)
	if err != nil {
		return err
	}
	if d != f.Digest || size != f.Size {
		return registry.Errorf(registry.CodeDigest, "%s changed after it was made: it was %s, is now %s", f.Name, f.Digest, d)
	}
	path := s.objectPath(f.Digest)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	staged := path + ".tmp-" + uuid.NewString()
	if err := Place(f.Path, staged); err != nil {
		return err
	}
	if err := flush(staged); err != nil {
		return errors.Join(err, remove(staged))
	}
	return os.Rename(staged, path)
}
