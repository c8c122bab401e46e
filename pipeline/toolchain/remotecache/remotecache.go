package remotecache

import (
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// PredicateStep is the type of a builder's predicate about a step: its key and its results.
const PredicateStep = "https://mlpromote.dev/step/v1"

// Media types of entries.
const (
	typeStep   = "application/vnd.mlpromote.step.v1+json"
	typeBundle = "application/vnd.dev.sigstore.bundle.v0.3+json"
	typeFile   = "application/octet-stream"
)

// Limits on the parts of an entry other than its files.
const (
	maxManifest = 4 << 20
	maxRecord   = 64 << 20
	maxBundle   = 4 << 20
	maxFiles    = 10_000
)

// Repository is the part of oras-go's interfaces that this package needs.
type Repository interface {
	content.Storage
	content.TagResolver
}

// Options say where entries are and which ones count. All but Sign are required.
type Options struct {
	Repository Repository
	Name       string // of the repository: "oci://registry.example.com/team/cache"
	Verify     storage.VerifyEvidence
	Resource   string               // resource that a builder must be trusted for: the repository of the engines
	Sign       storage.SignEvidence // nil: the cache is read-only
}

// Steps is a cache of steps in an OCI repository. If the repository cannot be reached, it
// counts as empty and is not asked again; [Steps.Trouble] returns the reason.
type Steps struct {
	Options

	mu      sync.Mutex
	ignored map[string]int // by reason
	trouble error
}

var _ toolchain.Steps = (*Steps)(nil)

// New returns the cache in a repository.
func New(o Options) *Steps { return &Steps{Options: o, ignored: make(map[string]int)} }

// Ignored returns the number of ignored entries by reason.
func (s *Steps) Ignored() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]int, len(s.ignored))
	for reason, n := range s.ignored {
		all[reason] = n
	}
	return all
}

// Trouble returns why the repository could not be used, or nil.
func (s *Steps) Trouble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble
}

func (s *Steps) troubled() bool { return s.Trouble() != nil }

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

// tag returns the tag of a key's entry.
func tag(key registry.Digest) string { return "step-" + key.Encoded() }

// Statement is the predicate [PredicateStep]: a builder says which files a step makes.
type Statement struct {
	Key   registry.Digest `json:"key"` // of everything that can change the result
	Files []File          `json:"files"`
}

// File is a file that a step makes.
type File struct {
	Name   string          `json:"name"`
	Digest registry.Digest `json:"digest"`
}

func newStatement(o toolchain.Outcome) Statement {
	s := Statement{Key: o.Key, Files: []File{}}
	for _, f := range o.Files {
		s.Files = append(s.Files, File{f.Name, f.Digest})
	}
	return s
}

// layers returns the files of a step as the layers of an entry.
func layers(o toolchain.Outcome) []ocispec.Descriptor {
	all := make([]ocispec.Descriptor, len(o.Files))
	for i, f := range o.Files {
		all[i] = ocispec.Descriptor{MediaType: typeFile, Digest: f.Digest,
			Size: f.Size, Annotations: map[string]string{ocispec.AnnotationTitle: f.Name}}
	}
	return all
}
