package toolchains

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/remotecache"
	"mlpromote.dev/mlpromote/registry"
)

// The modes of the build cache.
const (
	cacheReadWrite = "read-write"
	cacheRead      = "read" // for jobs that run what is not reviewed: they use what is there and add nothing
	cacheOff       = "off"
)

// DefaultCacheSize is what finished steps may take on this machine where nothing is said.
const DefaultCacheSize = "20GiB"

// CacheFlags are those of verbs that do steps.
type CacheFlags struct {
	address, mode string
	Off           bool // --no-cache
}

// Add defines the flags.
func (f *CacheFlags) Add(c *cobra.Command) {
	c.Flags().StringVar(&f.address, "cache", "",
		"oci://HOST/REPOSITORY that shares finished steps between machines (default MLPROMOTE_CACHE_REPOSITORY, else cache in the spec)")
	c.Flags().StringVar(&f.mode, "cache-mode", "",
		"read-write, read (use finished steps, add none) or off (default MLPROMOTE_CACHE_MODE, else read-write)")
	c.Flags().BoolVar(&f.Off, "no-cache", false, "do every step anew, and remember none: --cache-mode off")
}

// BuildCache is the build cache of one run.
type BuildCache struct {
	steps  toolchain.Steps // nil: nothing is remembered
	local  *toolchain.Store
	shared *remotecache.Steps // nil without one
	mode   string
	most   int64 // bytes of local
}

// OpenBuildCache opens the build cache of this machine, as the flags and the environment ask for
// it, and says which one is shared with others: the zero address for none.
func (c Config) OpenBuildCache(s *spec.Spec, f CacheFlags) (*BuildCache, spec.Cache, error) {
	m := &BuildCache{mode: cmp.Or(f.mode, c.Getenv("MLPROMOTE_CACHE_MODE"), cacheReadWrite)}
	if f.Off && f.mode == "" {
		m.mode = cacheOff
	}
	if !slices.Contains([]string{cacheReadWrite, cacheRead, cacheOff}, m.mode) || f.Off && m.mode != cacheOff {
		return nil, spec.Cache{}, registry.Errorf(registry.CodeInvalid,
			"--cache-mode %q: want %s, %s or %s; with --no-cache, only the last of these", m.mode, cacheReadWrite, cacheRead, cacheOff)
	}
	if m.mode == cacheOff {
		return m, spec.Cache{}, nil
	}
	if err := c.openLocal(m); err != nil {
		return nil, spec.Cache{}, err
	}
	text := cmp.Or(f.address, c.Getenv("MLPROMOTE_CACHE_REPOSITORY"))
	if text == "" {
		return m, s.Cache, nil
	}
	address, err := spec.ParseCache(text)
	return m, address, err
}

// Share puts the cache that machines share behind that of this one. An entry that another
// machine left counts with the signature of a builder who is trusted for the repository
// that the engines go to.
func (m *BuildCache) Share(i *wiring.Instance, address spec.Cache, model string) (err error) {
	if address == (spec.Cache{}) {
		return nil
	}
	if m.shared, err = sharedSteps(i, address, model, m.mode); err == nil {
		m.steps = toolchain.Behind(m.steps, m.shared)
	}
	return err
}

// OpenLocal opens the build cache of this machine alone.
func (c Config) OpenLocal() (*BuildCache, error) {
	m := &BuildCache{}
	return m, c.openLocal(m)
}

// List returns the steps on this machine.
func (m *BuildCache) List(ctx context.Context) ([]Kept, error) { return m.local.List(ctx) }

// Prune removes the steps that were not used for longest until the others fit into most bytes; nil means what
// the machine is set to. It returns what it removed, and what the others take.
func (m *BuildCache) Prune(ctx context.Context, most *int64) (removed []Kept, left int64, err error) {
	if most == nil {
		most = &m.most
	}
	return m.local.Prune(ctx, *most)
}

func (c Config) openLocal(m *BuildCache) error {
	root, err := c.Root()
	if err != nil {
		return err
	}
	size, err := spec.ParseSize(cmp.Or(c.Getenv("MLPROMOTE_CACHE_SIZE"), DefaultCacheSize))
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "MLPROMOTE_CACHE_SIZE: %w", err)
	}
	m.local, m.most = toolchain.NewStore(filepath.Join(root, "steps")), int64(size)
	if m.steps = m.local; m.mode == cacheRead {
		m.steps = toolchain.ReadOnly(m.local)
	}
	return nil
}

// sharedSteps are the finished steps in an OCI repository.
func sharedSteps(i *wiring.Instance, at spec.Cache, model, mode string) (*remotecache.Steps, error) {
	repository, err := i.Content.At(at.Host, at.Repository)
	if err != nil {
		return nil, err
	}
	o := remotecache.Options{
		Repository: repository, Name: at.String(), Verify: i.Verify,
		Resource: i.Envs.ResourceURI(i.Envs.First().Name, model),
	}
	if mode == cacheReadWrite {
		o.Sign = i.Keys.Sign
	}
	return remotecache.New(o), nil
}

// Close bounds what was remembered, and says what did not count.
func (m *BuildCache) Close(ctx context.Context, u *ui.UI, saved bool) error {
	if m.shared != nil {
		ignored := m.shared.Ignored()
		for _, reason := range slices.Sorted(maps.Keys(ignored)) {
			u.Note("warning: %s of the build cache %s ignored: %s", registry.Count(ignored[reason], "entry", "entries"), m.shared.Name, reason)
		}
		if err := m.shared.Trouble(); err != nil {
			u.Note("warning: the build cache %s was not used to the end: %s", m.shared.Name, err)
		}
	}
	if !saved || m.mode != cacheReadWrite {
		return nil
	}
	_, _, err := m.local.Prune(ctx, m.most)
	return err
}
