package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
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

// defaultCacheSize is what finished steps may take on this machine where nothing is said.
const defaultCacheSize = "20GiB"

// cacheFlags are those of verbs that do steps.
type cacheFlags struct {
	address, mode string
	none          bool
}

func (f *cacheFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.address, "cache", "", "oci://HOST/REPOSITORY that shares finished steps between machines (default MLPROMOTE_CACHE_REPOSITORY, else cache in the spec)")
	c.Flags().StringVar(&f.mode, "cache-mode", "", "read-write, read (use finished steps, add none) or off (default MLPROMOTE_CACHE_MODE, else read-write)")
	c.Flags().BoolVar(&f.none, "no-cache", false, "do every step anew, and remember none: --cache-mode off")
}

// buildCache is the build cache of one run.
type buildCache struct {
	steps  toolchain.Steps // nil: nothing is remembered
	local  *toolchain.Store
	shared *remotecache.Steps // nil without one
	mode   string
	most   int64 // bytes of local
}

// openBuildCache opens the build cache of this machine, as the flags and the environment ask for
// it, and says which one is shared with others: the zero address for none.
func (a *app) openBuildCache(s *spec.Spec, f cacheFlags) (*buildCache, spec.Cache, error) {
	m := &buildCache{mode: cmp.Or(f.mode, a.getenv("MLPROMOTE_CACHE_MODE"), cacheReadWrite)}
	if f.none && f.mode == "" {
		m.mode = cacheOff
	}
	if !slices.Contains([]string{cacheReadWrite, cacheRead, cacheOff}, m.mode) || f.none && m.mode != cacheOff {
		return nil, spec.Cache{}, registry.Errorf(registry.CodeInvalid, "--cache-mode %q: want %s, %s or %s, and the last with --no-cache", m.mode, cacheReadWrite, cacheRead, cacheOff)
	}
	if m.mode == cacheOff {
		return m, spec.Cache{}, nil
	}
	if err := a.openLocalSteps(m); err != nil {
		return nil, spec.Cache{}, err
	}
	text := cmp.Or(f.address, a.getenv("MLPROMOTE_CACHE_REPOSITORY"))
	if text == "" {
		return m, s.Cache, nil
	}
	address, err := spec.ParseCache(text)
	return m, address, err
}

// share puts the cache that machines share behind that of this one. An entry that another
// machine left counts with the signature of a builder who is trusted for the repository
// that the engines go to.
func share(i *wiring.Instance, m *buildCache, address spec.Cache, model string) (err error) {
	if address == (spec.Cache{}) {
		return nil
	}
	if m.shared, err = sharedSteps(i, address, model, m.mode); err == nil {
		m.steps = toolchain.Behind(m.steps, m.shared)
	}
	return err
}

func (a *app) openLocalSteps(m *buildCache) error {
	root, err := a.cacheRoot()
	if err != nil {
		return err
	}
	size, err := spec.ParseSize(cmp.Or(a.getenv("MLPROMOTE_CACHE_SIZE"), defaultCacheSize))
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

// close bounds what was remembered, and says what did not count.
func (m *buildCache) close(ctx context.Context, a *app, saved bool) error {
	if m.shared != nil {
		ignored := m.shared.Ignored()
		for _, reason := range slices.Sorted(maps.Keys(ignored)) {
			a.ui.Note("warning: %s of the build cache %s ignored: %s", registry.Count(ignored[reason], "entry", "entries"), m.shared.Name, reason)
		}
		if err := m.shared.Trouble(); err != nil {
			a.ui.Note("warning: the build cache %s was not used to the end: %s", m.shared.Name, err)
		}
	}
	if !saved || m.mode != cacheReadWrite {
		return nil
	}
	_, _, err := m.local.Prune(ctx, m.most)
	return err
}

func (a *app) cacheCommand() *cobra.Command {
	list := &cobra.Command{
		Use:     "list",
		Short:   "List the cached build steps on this machine, most recently used first",
		Example: "  mlpromote cache list",
		Args:    command.Exactly(),
		RunE:    func(c *cobra.Command, _ []string) error { return a.listSteps(c.Context()) },
	}
	var most string
	prune := &cobra.Command{
		Use:   "prune",
		Short: "Remove the least recently used build steps, and leftovers of crashes",
		Long: `Removes finished steps from this machine, the one that was not used for longest first,
until the others fit. build does this with MLPROMOTE_CACHE_SIZE. A step that is gone is done
again when it is needed. Nothing is removed that a build is reading or writing.`,
		Example: "  mlpromote cache prune --max-size 0",
		Args:    command.Exactly(),
		RunE:    func(c *cobra.Command, _ []string) error { return a.pruneSteps(c.Context(), most) },
	}
	prune.Flags().StringVar(&most, "max-size", "", "what the others may take, such as 5GiB; 0 removes all (default MLPROMOTE_CACHE_SIZE, else "+defaultCacheSize+")")
	return command.Group("cache", "List and remove finished steps of builds", list, prune)
}

func (a *app) listSteps(ctx context.Context) error {
	m := &buildCache{}
	if err := a.openLocalSteps(m); err != nil {
		return err
	}
	all, err := m.local.List(ctx)
	if err != nil {
		return err
	}
	return a.ui.Result(stepsText(all), nonNil(all))
}

func (a *app) pruneSteps(ctx context.Context, most string) error {
	m := &buildCache{}
	if err := a.openLocalSteps(m); err != nil {
		return err
	}
	if most != "" {
		size, err := spec.ParseSize(most)
		if err != nil {
			return registry.Errorf(registry.CodeInvalid, "--max-size: %w", err)
		}
		m.most = int64(size)
	}
	removed, left, err := m.local.Prune(ctx, m.most)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("removed %s, the others take %s", registry.Count(len(removed), "step"), ui.Size(left))
	return a.ui.Result(text, prunedSteps{nonNil(removed), left})
}

// prunedSteps is what cache prune removed.
type prunedSteps struct {
	Removed []toolchain.Kept `json:"removed"`
	Left    int64            `json:"left"` // bytes
}

func nonNil(kept []toolchain.Kept) []toolchain.Kept { return append([]toolchain.Kept{}, kept...) }

func stepsText(all []toolchain.Kept) string {
	rows := [][]string{{"STEP", "VERB", "TOOLCHAIN", "SIZE", "LAST USED", "FROM"}}
	for _, k := range all {
		rows = append(rows, []string{ui.Short(k.Key), string(k.Verb), k.Tool, ui.Size(k.Size), k.Used.Format(time.DateTime), cmp.Or(strings.TrimPrefix(k.Origin.Cache, "oci://"), "-")})
	}
	return ui.Table(rows)
}
