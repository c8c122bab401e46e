package building

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/printing"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/tune"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// tuneFlags are those of the verb.
type tuneFlags struct {
	file     string
	budget   time.Duration
	plot     string
	nodeCost string
	write    bool
	own      toolchains.Replacements
}

func tuneCommand(a *program.App) *cobra.Command {
	var f tuneFlags
	c := &cobra.Command{
		Use:   "tune",
		Short: "Measure variants on this machine and select the best for an objective",
		Long: `Makes the variants that the spec declares under tune, or one variant for each method, for every
target that this machine meets; compares them with the reference model on all cases;
measures latency in turns; and selects the best by the objective in the spec:

  objective: {max: throughput, subject_to: {p99: 20ms, accuracy_drop: 0.5%}}

Only the build cache stores anything. Interrupted, it shows the measurements so far.

Exit code 3: no variant keeps all constraints. 6: this machine meets no target.`,
		Example: "  mlpromote tune --budget 10m --plot tune.svg --write",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			price, err := parseNodeCost(f.nodeCost)
			if err == nil && f.budget <= 0 {
				err = fmt.Errorf("--budget %s: want a time, such as 10m", f.budget)
			}
			if err == nil {
				err = checkPlot(f.plot)
			}
			if err != nil {
				return command.Usage(c, err)
			}
			if err := f.own.Check(); err != nil {
				return err
			}
			return tuneModel(c.Context(), a, f, price)
		},
	}
	program.SpecFlag(c, &f.file)
	f.own.Add(c)
	c.Flags().DurationVar(&f.budget, "budget", 10*time.Minute, "wall time to spend; work under way is finished")
	c.Flags().StringVar(&f.plot, "plot", "", "file for a drawing of latency against loss, as SVG")
	c.Flags().StringVar(&f.nodeCost, "node-cost", "", "price of this machine per hour, such as 1.006/h, for the cost of a million predictions")
	c.Flags().BoolVar(&f.write, "write", false, "write the choice into the spec, in place of its variants")
	return c
}

func tuneModel(ctx context.Context, a *program.App, f tuneFlags, price float64) error {
	s, env, err := a.LocalSpec(f.file, f.own)
	if err != nil {
		return err
	}
	result, err := tune.Tune(ctx, env, s, tune.Options{Budget: f.budget})
	if len(result.Trials) == 0 {
		return err
	}
	for _, u := range result.Skipped {
		a.UI.Note("not tried: %s: %s", u.Label, u.Reason)
	}
	for _, line := range result.Advice {
		a.UI.Note("%s", line)
	}
	if said := a.UI.Result(tuneText(result, price), tuneDocument(result, price)); said != nil {
		return said
	}
	if err != nil {
		return err
	}
	return finishTune(a, f, s, result)
}

// finishTune writes the files that were asked for.
func finishTune(a *program.App, f tuneFlags, s *spec.Spec, r tune.Result) error {
	if f.plot != "" {
		drawing, err := r.Plot()
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.plot, drawing, 0o666); err != nil {
			return registry.Errorf(registry.CodeInvalid, "--plot: %w", err)
		}
		a.UI.Note("drawn: %s", f.plot)
	}
	if r.Chosen < 0 {
		return registry.Errorf(registry.CodeLimit, "no variant keeps all constraints: the last column names the broken ones")
	}
	if !f.write {
		return nil
	}
	if err := r.WriteFile(s, f.file); err != nil {
		return err
	}
	a.UI.Note("written to %s: variants: [%s]", f.file, r.Trials[r.Chosen].Spec)
	return nil
}

// checkPlot tells of a drawing that has no place before time is spent on what it shows.
func checkPlot(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("--plot %s: want a file, found a folder", path)
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return fmt.Errorf("--plot %s: want a file in a folder that is there: %w", path, err)
	}
	return nil
}

// parseNodeCost reads a price per hour: "1.006" or "1.006/h". Empty is none.
func parseNodeCost(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	price, err := strconv.ParseFloat(strings.TrimSuffix(text, "/h"), 64)
	if err != nil || !(price > 0 && price < 1e9) {
		return 0, fmt.Errorf("--node-cost %q: want a price per hour, such as 1.006/h", text)
	}
	return price, nil
}

// tunedTrial is a trial as JSON, with its cost.
type tunedTrial struct {
	tune.Trial
	CostPerMillion float64 `json:"costPerMillion,omitempty"` // of predictions, in the unit of --node-cost
}

func tuneDocument(r tune.Result, price float64) tuned {
	trials := make([]tunedTrial, len(r.Trials))
	for i, t := range r.Trials {
		trials[i] = tunedTrial{Trial: t}
		if t.Latency != nil && price > 0 {
			trials[i].CostPerMillion = t.CostPerMillion(price)
		}
	}
	return tuned{r, trials}
}

// tuned is what tune found out.
type tuned struct {
	tune.Result
	Trials []tunedTrial `json:"trials"`
}

// tuneText is a table of the trials: "*" for the choice, "+" for others on the Pareto front.
func tuneText(r tune.Result, price float64) string {
	header := []string{"", "VARIANT", "PRECISION", "SIZE", strings.ToUpper(r.Loss), "P50", "P99", "PER SECOND"}
	if price > 0 {
		header = append(header, "COST OF 1M")
	}
	rows := [][]string{append(header, "BREAKS")}
	for i, t := range r.Trials {
		mark := ""
		switch {
		case i == r.Chosen:
			mark = "*"
		case t.Front:
			mark = "+"
		}
		rows = append(rows, append([]string{mark}, trialCells(t, r.Loss, price)...))
	}
	text := ui.Table(rows) + "\n* the choice, + others on the Pareto front of throughput, p99, size and " + r.Loss + "\n"
	if r.Chosen >= 0 {
		text += fmt.Sprintf("%s serves %s best: variants: [%s]\n", r.Trials[r.Chosen].Label(), r.Goal, r.Trials[r.Chosen].Spec)
	}
	return text
}

func trialCells(t tune.Trial, loss string, price float64) []string {
	lost := printing.Cell(t.Loss, "%.1f dB")
	if loss == tune.LossAccuracy {
		lost = printing.Percent(float64(t.Loss))
	}
	if math.IsNaN(float64(t.Loss)) {
		lost = "-"
	}
	cells := []string{t.Label(), t.Precision, ui.Size(t.SizeBytes), lost, "-", "-", "-"}
	cost := "-"
	if l := t.Latency; l != nil {
		cells[4], cells[5], cells[6] = printing.Duration(l.P50Ns), printing.Duration(l.P99Ns), fmt.Sprintf("%.0f", l.PerSecond)
		cost = fmt.Sprintf("%.4f", t.CostPerMillion(price))
	}
	if price > 0 {
		cells = append(cells, cost)
	}
	broken := strings.Join(t.Violations, ", ")
	if t.Verdict != evidence.VerdictPass && broken == "" {
		broken = "limits"
	}
	return append(cells, broken)
}
