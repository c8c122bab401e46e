package upkeep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/gc"
)

// GC deletes content that nothing needs.
func (v Verbs) GC() *cobra.Command {
	keep := gc.DefaultRetention()
	var dryRun bool
	c := &cobra.Command{
		Use:   "gc",
		Short: "Delete unreferenced content",
		Long: `Deletes engines, evidence, sources and other content that no head, no earlier head, no tag
and nothing young needs. An engine and its evidence go together. It waits for other verbs,
and they wait for it; a service collects by itself (mlpromote serve --gc-interval). With
--database it works while services run: content that it finds is deleted by a later collection, when
--grace has passed and nobody asked for it. Content that belongs to another catalog was skipped.
stdout: deleted content, or with --dry-run content to delete, and why the rest stays.`,
		Example: "  mlpromote gc --dry-run\n  mlpromote gc --grace 1h --keep-heads 3 --keep-for 720h",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if v.At().Registry != "" {
				return registry.Errorf(registry.CodeInvalid, "gc works on a data directory, not on --registry %s, which collects by itself", v.At().Registry)
			}
			return v.toCollect(c.Context(), func(i *wiring.Instance, alone bool) error { return v.collect(c.Context(), i, keep, alone, dryRun) })
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing")
	c.Flags().DurationVar(&keep.Grace, "grace", keep.Grace, "keep younger content")
	c.Flags().IntVar(&keep.Heads, "keep-heads", keep.Heads, "leave alone so many earlier heads of each model in each protected environment")
	c.Flags().DurationVar(&keep.Period, "keep-for", keep.Period, "keep releases that were a head within this time")
	return c
}

// toCollect opens the data directory for a collection. One with a catalog in a file is
// locked, which keeps every other user of that catalog out. With a catalog in PostgreSQL
// there may be others anywhere, beside whom it collects as a service does.
func (v Verbs) toCollect(ctx context.Context, f func(i *wiring.Instance, alone bool) error) (err error) {
	if v.At().Database != "" {
		return v.withLocal(ctx, func(i *wiring.Instance) error { return f(i, false) })
	}
	if _, err := os.Stat(v.At().Data); errors.Is(err, fs.ErrNotExist) {
		return wiring.NoData(v.At().Data)
	}
	_, unlock, err := v.At().Dir().LockExclusive(ctx, v.At().Waiting)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	i, err := v.At().OpenDirectory(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(i, true), i.Close())
}

// withLocal runs f on the data directory, and closes it.
func (v Verbs) withLocal(ctx context.Context, f func(*wiring.Instance) error) error {
	i, err := v.At().OpenLocal(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(i), i.Close())
}

func (v Verbs) collect(ctx context.Context, i *wiring.Instance, keep gc.Retention, alone, dryRun bool) error {
	c, err := gc.New(wiring.CollectorConfig(i.Local, i.Envs, keep, alone))
	if err != nil {
		return err
	}
	if dryRun {
		plan, err := c.Plan(ctx)
		if err != nil {
			return err
		}
		return v.UI.Result(collectionText(plan, v.UI.Verbose), collectionOf(plan))
	}
	did, err := c.Collect(ctx)
	if err != nil {
		return err
	}
	for _, left := range did.SkippedRepositories {
		v.UI.Note("%s was skipped: %s", left.Repository, left.Reason)
	}
	if !alone && did.Marked > 0 {
		v.UI.Note("not needed any more: %s; a collection deletes those that no request needs within %v", registry.Count(did.Marked, "record"), keep.Grace)
	}
	if did.Expired > 0 {
		v.UI.Note("deleted %s of nodes, which no longer counted", registry.Count(did.Expired, "report"))
	}
	if did.Composed > 0 {
		v.UI.Note("deleted the own bytes of %s, %s: they are composed of the files of their engines when they are read",
			registry.Count(did.Composed, "image layer"), ui.Size(did.ComposedBytes))
	}
	return v.UI.Result(fmt.Sprintf("deleted %s and %s, %s; %s of broken uploads",
		registry.Count(did.Manifests, "manifest"), registry.Count(did.Blobs, "blob"), ui.Size(did.Bytes), registry.Count(did.Leftovers, "leftover")), did)
}

// plannedOutcome is what a collection would do with one record.
type plannedOutcome struct {
	Repository string          `json:"repository"`
	Kind       string          `json:"kind"` // manifest or blob
	Digest     registry.Digest `json:"digest"`
	Size       int64           `json:"size"`
	Tags       []string        `json:"tags,omitempty"`
	Created    time.Time       `json:"created"`
	Delete     bool            `json:"delete"`
	Reason     string          `json:"reason,omitempty"` // why it is kept
}

// collection is what a collection would do.
type collection struct {
	Content             []plannedOutcome       `json:"content"`
	Blobs               int                    `json:"blobs"`
	Bytes               int64                  `json:"bytes"`
	SkippedRepositories []gc.SkippedRepository `json:"skippedRepositories,omitempty"`
}

func collectionOf(p gc.Plan) collection {
	out := collection{Content: []plannedOutcome{}, Blobs: p.Blobs, Bytes: p.Bytes, SkippedRepositories: p.SkippedRepositories}
	for _, r := range p.Repositories {
		for _, f := range r.Outcomes {
			kind := "blob"
			if f.Manifest {
				kind = "manifest"
			}
			out.Content = append(out.Content, plannedOutcome{r.Repository, kind, f.Digest, f.Size, f.Tags, f.Created, f.Delete, f.KeptBecause})
		}
	}
	return out
}

// collectionText shows what would be deleted, and the manifests that would be kept: blobs are kept with them.
func collectionText(p gc.Plan, verbose bool) string {
	rows := [][]string{{"REPOSITORY", "KIND", "DIGEST", "SIZE", "OUTCOME"}}
	manifests := 0
	for _, f := range collectionOf(p).Content {
		if f.Delete && f.Kind == "manifest" {
			manifests++
		}
		outcome := "delete"
		if !f.Delete {
			outcome = "keep: " + f.Reason
		}
		if f.Delete || f.Kind == "manifest" || verbose {
			rows = append(rows, []string{f.Repository, f.Kind, ui.Short(f.Digest), ui.Size(f.Size), outcome})
		}
	}
	text := ui.Table(rows)
	for _, left := range p.SkippedRepositories {
		text += fmt.Sprintf("%s was skipped: %s\n", left.Repository, ui.Plain(left.Reason))
	}
	return text + fmt.Sprintf("\nwould delete %s and %s, %s\n", registry.Count(manifests, "manifest"), registry.Count(p.Blobs, "blob"), ui.Size(p.Bytes))
}
