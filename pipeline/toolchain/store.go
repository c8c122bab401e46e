package toolchain

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Store is a directory of finished steps: objects/ holds files by digest, steps/
// one record per key. Files are written under another name, flushed and renamed, so
// that processes may share it and a crash leaves nothing half there. What does not
// hash to its name counts as absent and is thrown away.
type Store struct{ dir string }

// NewStore is the store in dir, which is made when something is saved.
func NewStore(dir string) *Store { return &Store{dir} }

// step is the record of a finished step.
type step struct {
	Key       registry.Digest `json:"key"`
	Verb      Verb            `json:"verb"`
	Files     []stepFile      `json:"files"`
	Result    json.RawMessage `json:"result"`
	ElapsedNS int64           `json:"elapsed_ns"`
	Enforced  Enforced        `json:"enforced"`
}

type stepFile struct {
	Name   string          `json:"name"`
	Digest registry.Digest `json:"digest"`
	Size   int64           `json:"size"`
}

// sealed is a step as it is written, with the digest of its text, so that a
// flipped bit in a result is seen as one in a file is.
type sealed struct {
	Step json.RawMessage `json:"step"`
	Sum  registry.Digest `json:"sum"`
}

// Load copies the files of a step into outDir and gives its outcome. Every byte is
// hashed on the way. Errors: CodeNotFound for a key that is not there or whose
// content is damaged, and then outDir is as empty as before.
func (s *Store) Load(ctx context.Context, key registry.Digest, outDir string) (Outcome, error) {
	record, err := s.record(key)
	if err != nil {
		return Outcome{}, err
	}
	outcome := Outcome{Result: record.Result, Cached: true, Elapsed: time.Duration(record.ElapsedNS), Key: key, Enforced: record.Enforced}
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
	return outcome, nil
}

// Save keeps an outcome under its Key. The files are hashed once more as they are
// copied. Errors: CodeDigest for a file that changed since.
func (s *Store) Save(ctx context.Context, verb Verb, outcome Outcome) error {
	record := step{Key: outcome.Key, Verb: verb, Result: outcome.Result, ElapsedNS: int64(outcome.Elapsed), Enforced: outcome.Enforced}
	for _, f := range outcome.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.keep(f); err != nil {
			return err
		}
		record.Files = append(record.Files, stepFile{f.Name, f.Digest, f.Size})
	}
	text, err := seal(record)
	if err != nil {
		return err
	}
	return writeFile(s.stepPath(outcome.Key), text)
}

// record reads and checks the record of a key; a damaged one is removed.
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

// discard removes what Load had copied so far. Where the reason was damage, the
// record goes too, so that the step is done again.
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
