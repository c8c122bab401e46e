package remotecache

import (
	"context"
	"errors"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// PredicateStep is what a builder says of a step: its key, and what it made.
const PredicateStep = "https://mlpromote.dev/step/v1"

// The types of entries.
const (
	typeStep   = "application/vnd.mlpromote.step.v1+json"
	typeBundle = "application/vnd.dev.sigstore.bundle.v0.3+json"
	typeFile   = "application/octet-stream"
)

// Limits on what is read of an entry besides its files.
const (
	maxManifest = 4 << 20
	maxRecord   = 64 << 20
	maxBundle   = 4 << 20
	maxFiles    = 10_000
)

// Repository is the part of oras-go's interfaces that entries need.
type Repository interface {
	content.Storage
	content.TagResolver
}

// Options say where entries are, and whose count. All but Sign are required.
type Options struct {
	Repository Repository
	Name       string // of the repository: "oci://registry.example.com/team/cache"
	Verify     registry.VerifyEvidence
	Resource   string                // that a builder must be trusted for: where the engines go
	Sign       registry.SignEvidence // nil keeps nothing: the memory is only read
}

// Steps is a memory of steps in an OCI repository. A repository that cannot be reached is
// one that has nothing: it is asked no more, and [Steps.Trouble] says why.
type Steps struct {
	Options

	mu      sync.Mutex
	ignored map[string]int // by reason
	trouble error
}

var _ toolchain.Steps = (*Steps)(nil)

// New is the memory in a repository.
func New(o Options) *Steps { return &Steps{Options: o, ignored: make(map[string]int)} }

// Ignored counts the entries that did not count, by the reason.
func (s *Steps) Ignored() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]int, len(s.ignored))
	for reason, n := range s.ignored {
		all[reason] = n
	}
	return all
}

// Trouble is why the repository could not be used, or nil.
func (s *Steps) Trouble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble
}

func (s *Steps) troubled() bool { return s.Trouble() != nil }

// Load brings the files of a step, as [toolchain.Steps] says. An entry that does not count
// is CodeNotFound, like one that is not there.
func (s *Steps) Load(ctx context.Context, key registry.Digest, outDir string) (toolchain.Outcome, error) {
	missing := registry.Errorf(registry.CodeNotFound, "step %s is not in %s", key, s.Name)
	if s.troubled() {
		return toolchain.Outcome{}, missing
	}
	outcome, err := s.load(ctx, key, outDir)
	switch {
	case err == nil:
		return outcome, nil
	case ctx.Err() != nil:
		return toolchain.Outcome{}, ctx.Err()
	case errors.Is(err, errdef.ErrNotFound):
	case registry.HasCode(err, registry.CodeTrust), registry.HasCode(err, registry.CodeDigest):
		s.ignore(err)
	default:
		s.note(err)
	}
	return toolchain.Outcome{}, missing
}

// Save keeps a step where Sign is set. A failure to keep it is not an error: the step is
// done, and another machine will do it again.
func (s *Steps) Save(ctx context.Context, about toolchain.About, outcome toolchain.Outcome) error {
	if s.Sign == nil || s.troubled() {
		return nil
	}
	err := s.save(ctx, about, outcome)
	if err != nil && ctx.Err() == nil {
		s.note(err)
	}
	return ctx.Err()
}

func (s *Steps) ignore(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ignored[reason.Error()]++
}

func (s *Steps) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble == nil {
		s.trouble = err
	}
}

// tag names the entry of a key.
func tag(key registry.Digest) string { return "step-" + key.Encoded() }

// statement is what a builder signs of a step.
type statement struct {
	Key   registry.Digest `json:"key"`
	Files []file          `json:"files"`
}

type file struct {
	Name   string          `json:"name"`
	Digest registry.Digest `json:"digest"`
}

func newStatement(o toolchain.Outcome) statement {
	s := statement{Key: o.Key, Files: []file{}}
	for _, f := range o.Files {
		s.Files = append(s.Files, file{f.Name, f.Digest})
	}
	return s
}

// layers are the files of a step as an entry has them.
func layers(o toolchain.Outcome) []ocispec.Descriptor {
	all := make([]ocispec.Descriptor, len(o.Files))
	for i, f := range o.Files {
		all[i] = ocispec.Descriptor{MediaType: typeFile, Digest: f.Digest,
			Size: f.Size, Annotations: map[string]string{ocispec.AnnotationTitle: f.Name}}
	}
	return all
}
