package upkeep

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/serving"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/scrub"
	"mlpromote.dev/mlpromote/registry/storage"
)

// scrubFlags say what scrub reads.
type scrubFlags struct {
	all, damaged bool
	since        time.Duration
	rate         int64
}

// Scrub reads all content and reports damage.
func (v Verbs) Scrub() *cobra.Command {
	var f scrubFlags
	c := &cobra.Command{
		Use:   "scrub",
		Short: "Read all stored content and report damage",
		Long: `Reads the content of the data directory, or of its bucket, and compares it with its digests.
It continues a pass that a service or an earlier scrub did not finish, or begins one. If it is
interrupted, the next scrub continues. A service does the same in the background (mlpromote
serve --scrub-interval). Of content on other registries, only
evidence against releases is compared with the catalog's copy, and listed again if it was
lost.
stdout: damaged content, and the releases that need it; exit code 5 if there is any.`,
		Example: "  mlpromote scrub --all\n  mlpromote scrub --since 24h\n  mlpromote scrub --damaged",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if v.At().Registry != "" {
				return registry.Errorf(registry.CodeInvalid, "scrub works on a data directory, not on --registry %s, which scrubs by itself", v.At().Registry)
			}
			if err := f.check(); err != nil {
				return err
			}
			return v.withLocal(c.Context(), func(i *wiring.Instance) error { return v.scrub(c.Context(), i, f) })
		},
	}
	c.Flags().BoolVar(&f.all, "all", false, "begin at the beginning")
	c.Flags().DurationVar(&f.since, "since", 0, "read only what came in within this time")
	c.Flags().BoolVar(&f.damaged, "damaged", false, "read only content known as damaged, after a repair")
	c.Flags().Int64Var(&f.rate, "rate", 0, "bytes a second to read; 0: as fast as the storage")
	return c
}

// check refuses flags that contradict each other.
func (f scrubFlags) check() error {
	asked := 0
	for _, is := range []bool{f.all, f.since != 0, f.damaged} {
		if is {
			asked++
		}
	}
	switch {
	case asked > 1:
		return registry.Errorf(registry.CodeInvalid, "scrub: want one of --all, --since and --damaged")
	case f.rate < 0 || f.since < 0:
		return registry.Errorf(registry.CodeInvalid, "scrub --rate %d --since %v: want 0 or more", f.rate, f.since)
	}
	return nil
}

// pieces counts content.
func pieces(n int64) string {
	return registry.Count(n, "piece of content", "pieces of content")
}

// scrubResult is what scrub did, and the damage that is known then.
type scrubResult struct {
	scrub.Result
	Damage []storage.Damage `json:"damage"`
	// Relisted counts the evidence that repositories lost, and that they list again.
	Relisted int `json:"relisted,omitempty"`
}

func (v Verbs) scrub(ctx context.Context, i *wiring.Instance, f scrubFlags) error {
	config := wiring.ScrubConfig(i.Local)
	config.Rate, config.Progress = f.rate, v.scrubProgress()
	s, err := scrub.New(config)
	if err != nil {
		return err
	}
	began := clock.Now()
	v.UI.Progress(ui.Piece{Name: scrubStep, State: ui.Started})
	did, err := v.scrubBy(ctx, i, s, f)
	step := ui.Piece{Name: scrubStep, State: ui.EndState(err), Elapsed: clock.Now().Sub(began), Note: pieces(did.Checked) + ", " + ui.Size(did.Bytes)}
	v.UI.Progress(step)
	if err != nil {
		return err
	}
	relisted, err := i.Service.Relist(ctx)
	if err != nil {
		v.UI.Note("what speaks against releases counts, and could not be compared with what repositories list: %v", err)
	}
	return v.scrubbed(ctx, i, did, relisted)
}

// scrubStep is what progress calls the work.
const scrubStep = "read content again"

// scrubProgress shows how much was read.
func (v Verbs) scrubProgress() func(int64) {
	var checked, bytes int64
	var told time.Time
	return func(n int64) {
		checked, bytes = checked+1, bytes+n
		if clock.Now().Sub(told) > time.Second {
			told = clock.Now()
			v.UI.Progress(ui.Piece{Name: scrubStep, State: ui.Moving, Note: pieces(checked) + ", " + ui.Size(bytes)})
		}
	}
}

// scrubBy reads what the flags ask for.
func (v Verbs) scrubBy(ctx context.Context, i *wiring.Instance, s *scrub.Scrubber, f scrubFlags) (scrub.Result, error) {
	switch {
	case f.damaged:
		return s.Recheck(ctx)
	case f.since > 0:
		today, err := i.Local.DB.CatalogTime(ctx)
		if err != nil {
			return scrub.Result{}, err
		}
		return s.Read(ctx, today.Add(-f.since))
	}
	pass := scrub.NewBackground(scrub.Background{Scrubber: s, Leases: i.Local.DB, Holder: rand.Text()})
	pass.Restart = f.all
	did, mine, err := pass.Pass(ctx)
	defer pass.Release(ctx)
	switch {
	case err != nil || mine:
		return did, err
	case f.all:
		v.UI.Note("a service is reading all content too; the progress of this pass is not remembered")
		return s.Read(ctx, time.Time{})
	}
	return scrub.Result{}, registry.WithHint(
		registry.Errorf(registry.CodeConflict, "a service is reading all content already, and lists damage in its log"),
		"--all reads it from the beginning all the same, --since TIME what came in since")
}

// scrubbed tells what is damaged.
func (v Verbs) scrubbed(ctx context.Context, i *wiring.Instance, did scrub.Result, relisted int) error {
	result := scrubResult{Result: did, Damage: []storage.Damage{}, Relisted: relisted}
	for after := ""; ; {
		page, err := i.Local.DB.Damages().List(ctx, after, storage.DefaultPage)
		if err != nil {
			return err
		}
		for _, known := range page {
			result.Damage = append(result.Damage, known.Document)
		}
		if len(page) < storage.DefaultPage {
			break
		}
		after = page[len(page)-1].Name
	}
	if len(result.Damage) == 0 {
		text := fmt.Sprintf("%s, %s: nothing is damaged", pieces(did.Checked), ui.Size(did.Bytes))
		if relisted > 0 {
			text += fmt.Sprintf("\nevidence that its repository lost, listed again: %d", relisted)
		}
		return v.UI.Result(text, result)
	}
	if err := v.UI.Result(damageText(result.Damage), result); err != nil {
		return err
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeDigest, "damaged: %s; do not use the releases that need it", pieces(int64(len(result.Damage)))),
		"restore its bytes from a backup, then mlpromote scrub --damaged; docs/how-to/operate.md, Damage")
}

func damageText(damages []storage.Damage) string {
	rows := [][]string{{"DIGEST", "DAMAGE", "REPOSITORY", "RELEASES"}}
	for _, d := range damages {
		for n, repository := range d.Repositories {
			row := []string{"", "", repository, ui.Dash(strings.Join(affectedIn(d, repository), ", "))}
			if n == 0 {
				row[0], row[1] = string(d.Digest), string(d.Kind)
			}
			rows = append(rows, row)
		}
	}
	return ui.Table(rows)
}

// affectedIn names the releases of a repository that need damaged content.
func affectedIn(d storage.Damage, repository string) []string {
	var names []string
	for _, r := range d.Releases {
		if registry.Repository(r.Environment, r.Model) == repository {
			names = append(names, serving.AffectedName(r))
		}
	}
	return names
}
