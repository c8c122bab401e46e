package diagnosis

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/diagnose"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/percase"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// replayOptions are the flags of replay.
type replayOptions struct {
	ref, engine, save string
	number            int
	own               toolchains.Replacements
}

// Replay runs the worst case of a report again.
func (v Verbs) Replay() *cobra.Command {
	var o replayOptions
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Run the worst case of a report again, on the engine and on the reference model",
		Long: `Runs one case on an engine and on the reference model, and shows the inputs, both outputs, what differs most, and
each limit that a single case can exceed. FILE is one of

  - a parity report: a signed bundle, its statement, or the predicate alone, as JSON (report check --save has them);
  - the per-case figures of a report, with --ref and --engine;
  - the case.json of a case that --save wrote.

The case is the case of a failed limit, else the case with the largest difference of an element; --case names another. Engine,
reference model and cases are fetched from the registry, which knows the release by the digest of the engine.
--ref names the release if FILE does not, or a release of another registry.

--save DIR writes case.npz with inputs and outputs, which numpy.load reads, and case.json, from which replay runs the
case again, on this engine or, with --engine and --ref, on another.

Exit code 3: the case exceeds a limit.`,
		Example: `  mlpromote report check --save kept
  mlpromote replay kept/linux-amd64-v1/int8/bundle.json --save worst
  mlpromote replay worst/case.json --engine linux-amd64-v1/fp32`,
		Args: command.Exactly("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("case") && o.number < 0 {
				return registry.Errorf(registry.CodeInvalid, "--case %d: want the number of a case, from 0 on", o.number)
			}
			if err := folderToBe("--save", o.save); err != nil {
				return err
			}
			if err := o.own.Check(); err != nil {
				return err
			}
			return v.With(c.Context(), func(i *wiring.Instance) error { return v.replay(c.Context(), i, args[0], o) })
		},
	}
	o.own.Add(c)
	c.Flags().StringVar(&o.ref, "ref", "", "release of the engine (default: the release that has the engine of FILE)")
	c.Flags().StringVar(&o.engine, "engine", "", "label, target, variant or digest of the engine (default: FILE's)")
	c.Flags().IntVar(&o.number, "case", -1, "number of the case (default: the worst of FILE)")
	c.Flags().StringVar(&o.save, "save", "", "folder for case.npz and case.json")
	return c
}

// replayed is what replay prints.
type replayed struct {
	Ref string `json:"ref"`
	diagnose.Replayed
	Saved string `json:"saved,omitempty"` // case.json
}

// savedCase is case.json.
type savedCase struct {
	V      int             `json:"v"` // 1
	Ref    string          `json:"ref"`
	Engine registry.Digest `json:"engine"`
	Case   *int            `json:"case,omitempty"` // in the release; absent for a case that was saved before
	// Inputs are the names of the model's inputs, by the names of the arrays in case.npz.
	Inputs map[string]string `json:"inputs"`
}

// maxReplayed bounds what is read of a file: the largest bundle, or the largest figures.
const maxReplayed = 4 << 20

func (v Verbs) replay(ctx context.Context, i *wiring.Instance, file string, o replayOptions) error {
	data, err := readLimited(file, maxReplayed)
	if err != nil {
		return err
	}
	ref, run, err := v.toReplay(ctx, i, file, data, o)
	if err != nil {
		return err
	}
	found, err := diagnose.Replay(ctx, v.Pipeline(i, nil, o.own), ref, run)
	if err != nil {
		return err
	}
	found.Ref.Host = i.HostOf(found.Ref.Environment)
	shown := replayed{Ref: found.Ref.String(), Replayed: found}
	if o.save != "" {
		if shown.Saved, err = saveCase(o.save, found); err != nil {
			return err
		}
	}
	if err := v.UI.Result(replayText(shown), shown); err != nil {
		return err
	}
	return exceeded(found)
}

// exceeded is the error of a case that exceeds limits.
func exceeded(r diagnose.Replayed) error {
	var lines []string
	for _, output := range r.Outputs {
		for _, check := range output.Checks {
			if check.Verdict == evidence.VerdictFail {
				lines = append(lines, fmt.Sprintf("output %s: %s is %s, %s", output.Name, check.Figure, validators.ValueText(check, float64(check.Value)),
					validators.LimitText(check)))
			}
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return registry.Errorf(registry.CodeLimit, "the case exceeds limits of %s:\n  %s", r.Engine, strings.Join(lines, "\n  "))
}

func readLimited(file string, most int64) ([]byte, error) {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return nil, registry.Errorf(registry.CodeInvalid,
			"%s: it is a folder: want a parity report, its per-case figures, or the case.json of a saved case", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "replay: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "replay: %w", err)
	}
	if int64(len(data)) > most {
		return nil, registry.Errorf(registry.CodeInvalid,
			"%s: more than %d bytes: want a report, its per-case figures, or the case.json of a saved case", file, most)
	}
	return data, nil
}

// toReplay finds out what a file is, and what is to be run.
func (v Verbs) toReplay(ctx context.Context, i *wiring.Instance, file string, data []byte, o replayOptions) (registry.Ref,
	diagnose.ReplayOptions, error) {
	run := diagnose.ReplayOptions{Engine: o.engine, Case: o.number}
	if figures, err := percase.Read(data); err == nil {
		return v.ofFigures(ctx, i, figures, o, run)
	}
	var saved savedCase
	if err := json.Unmarshal(data, &saved); err == nil && saved.V == 1 && saved.Ref != "" && len(saved.Inputs) > 0 {
		return v.ofSaved(ctx, i, file, saved, o, run)
	}
	subject, report, err := reportIn(data)
	if err != nil {
		return registry.Ref{}, run, registry.Errorf(registry.CodeInvalid,
			"%s: %s: want a parity report as a bundle, statement or predicate, its per-case figures, or the case.json of a saved case", file, err.Error())
	}
	run.Report, run.Engine = &report, cmp.Or(run.Engine, string(subject))
	if run.Case < 0 {
		worst, ok := diagnose.WorstCase(report)
		if !ok {
			return registry.Ref{}, run, registry.Errorf(registry.CodeInvalid,
				"%s: no case of the report differs from the reference model: name one with --case", file)
		}
		run.Case = worst
	}
	if o.ref == "" {
		ref, err := holder(ctx, i, subject)
		return ref, run, err
	}
	ref, err := v.ModelOrReference(ctx, i, "replay", "", []string{o.ref})
	return ref, run, err
}

// ofFigures is the worst case of per-case figures: the one with the largest error.
func (v Verbs) ofFigures(ctx context.Context, i *wiring.Instance, figures percase.Figures, o replayOptions, run diagnose.ReplayOptions) (registry.Ref,
	diagnose.ReplayOptions, error) {
	if o.ref == "" || o.engine == "" {
		return registry.Ref{}, run, registry.Errorf(registry.CodeInvalid,
			"per-case figures do not name their engine: want --ref and --engine with them")
	}
	if run.Case < 0 {
		most := 0.0
		for _, each := range figures.Outputs {
			for number, f := range each {
				if !(f.MaxAbs <= most) {
					run.Case, most = number, f.MaxAbs
				}
			}
		}
	}
	if run.Case < 0 {
		return registry.Ref{}, run, registry.Errorf(registry.CodeInvalid,
			"no case of the figures differs from the reference model: name one with --case")
	}
	ref, err := v.ModelOrReference(ctx, i, "replay", "", []string{o.ref})
	return ref, run, err
}

// ofSaved is a case that replay saved.
func (v Verbs) ofSaved(ctx context.Context, i *wiring.Instance, file string, saved savedCase, o replayOptions, run diagnose.ReplayOptions) (registry.Ref,
	diagnose.ReplayOptions, error) {
	path := filepath.Join(filepath.Dir(file), "case.npz")
	f, err := os.Open(path)
	if err != nil {
		return registry.Ref{}, run, registry.Errorf(registry.CodeInvalid, "replay: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return registry.Ref{}, run, err
	}
	arrays, err := tensorfile.ReadNpz(f, info.Size(), tensorfile.Limits{})
	if err != nil {
		return registry.Ref{}, run, registry.Errorf(registry.CodeInvalid, "%s: %s", path, err.Error())
	}
	run.Inputs = make(map[string]tensor.Tensor)
	for array, name := range saved.Inputs {
		t, ok := arrays[array]
		if !ok {
			return registry.Ref{}, run, registry.Errorf(registry.CodeInvalid, "%s has no array %.100q, which %s names", path, array, file)
		}
		run.Inputs[name] = t
	}
	run.Engine = cmp.Or(run.Engine, string(saved.Engine))
	ref, err := v.ModelOrReference(ctx, i, "replay", "", []string{cmp.Or(o.ref, saved.Ref)})
	return ref, run, err
}

// reportIn takes a parity report out of a bundle, a statement, or a predicate alone, and the digest of its engine.
func reportIn(data []byte) (subject registry.Digest, report evidence.ParityReport, err error) {
	var bundle struct {
		Envelope struct {
			Payload []byte `json:"payload"`
		} `json:"dsseEnvelope"`
	}
	if err := registry.DecodeSigned(data, &bundle); err != nil {
		return "", report, errors.New("it is no JSON document of ours")
	}
	if len(bundle.Envelope.Payload) > 0 {
		data = bundle.Envelope.Payload
	}
	var statement evidence.Statement
	if err := registry.DecodeSigned(data, &statement); err != nil {
		return "", report, errors.New("the signed content is no statement")
	}
	if statement.Type != "" {
		if statement.PredicateType != evidence.PredicateParity {
			return "", report, fmt.Errorf("its predicate type is %.100q, not %q", statement.PredicateType, evidence.PredicateParity)
		}
		for _, s := range statement.Subject {
			subject = s.Digest.SHA256()
		}
		data = statement.Predicate
	}
	if err := registry.DecodeSigned(data, &report); err != nil {
		return "", report, errors.New("its keys are not a parity report's")
	}
	if report.Verdict == "" || len(report.Outputs) == 0 {
		return "", report, errors.New("it has no verdict and no outputs")
	}
	return subject, report, nil
}

// holder finds the release that has an engine, by the evidence that the history names.
func holder(ctx context.Context, i *wiring.Instance, engine registry.Digest) (registry.Ref, error) {
	if engine == "" {
		return registry.Ref{}, registry.Errorf(registry.CodeInvalid,
			"the report does not name its engine, since it is without its statement: want --ref and --engine")
	}
	events, err := i.Registry.History(ctx, history.HistoryQuery{Subject: engine, Descending: true, Limit: 100})
	if err != nil {
		return registry.Ref{}, err
	}
	for _, e := range events {
		heads, err := i.Registry.History(ctx, history.HistoryQuery{Environment: e.Environment, Model: e.Model, Descending: true, Limit: 1000})
		if err != nil {
			return registry.Ref{}, err
		}
		for _, h := range heads {
			if h.Release == "" {
				continue
			}
			release, err := i.Registry.Release(ctx, h.Environment, h.Model, string(h.Release))
			if err != nil {
				continue // deleted, perhaps
			}
			if _, ok := release.Engine(engine); ok {
				return registry.Ref{Environment: h.Environment, Model: h.Model, Digest: h.Release}, nil
			}
		}
	}
	return registry.Ref{}, registry.WithHint(registry.Errorf(registry.CodeNotFound, "no release here has engine %s", engine),
		"name its release with --ref")
}

// folderToBe refuses the path of a flag that cannot become a folder, because a file is there. Errors: CodeInvalid.
func folderToBe(flag, path string) error {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return registry.Errorf(registry.CodeInvalid, "%s %s: it is a file: want a folder", flag, path)
	}
	return nil
}

// saveCase writes case.npz and case.json, and returns the path of the latter.
func saveCase(dir string, r diagnose.Replayed) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	arrays := make(map[string]tensor.Tensor)
	saved := savedCase{V: 1, Ref: r.Ref.String(), Engine: r.Digest, Case: r.Case, Inputs: map[string]string{}}
	add := func(prefix string, tensors map[string]tensor.Tensor, note map[string]string) {
		for name, t := range tensors {
			array := prefix + strings.NewReplacer("/", ".", `\`, ".", ":", ".").Replace(name)
			for arrays[array].DType != "" {
				array += "'"
			}
			arrays[array] = t
			if note != nil {
				note[array] = name
			}
		}
	}
	add("input.", r.Given, saved.Inputs)
	add("reference.", r.Reference, nil)
	add("engine.", r.Computed, nil)
	var npz bytes.Buffer
	if err := tensorfile.WriteNpz(&npz, arrays); err != nil {
		return "", registry.Errorf(registry.CodeInvalid, "--save: %s", err.Error())
	}
	if err := os.WriteFile(filepath.Join(dir, "case.npz"), npz.Bytes(), 0o600); err != nil {
		return "", err
	}
	data, err := json.MarshalIndent(saved, "", "  ")
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, "case.json")
	return to, os.WriteFile(to, append(data, '\n'), 0o600)
}

func replayText(r replayed) string {
	which := "a saved case"
	if r.Case != nil {
		which = fmt.Sprintf("case %d", *r.Case)
	}
	text := fmt.Sprintf("%s\n%s on %s %s, %s\n\n", ui.Plain(r.Ref), ui.Plain(r.Engine), ui.Plain(r.Runtime.Name), ui.Plain(r.Runtime.Version), which)
	rows := [][]string{{"", "NAME", "TYPE", "SHAPE", "SMALLEST", "LARGEST", "MEAN", "SPREAD"}}
	row := func(what string, s diagnose.TensorSummary) {
		cells := []string{what, s.Name, s.DType, strings.Trim(fmt.Sprint(s.Shape), "[]")}
		for _, f := range []evidence.Figure{s.Min, s.Max, s.Mean, s.Spread} {
			cells = append(cells, fmt.Sprintf("%.4g", float64(f)))
		}
		if s.Others > 0 {
			cells = append(cells, fmt.Sprintf("%d NaN or infinite", s.Others))
		}
		rows = append(rows, cells)
	}
	for _, s := range r.Inputs {
		row("input", s)
	}
	for _, o := range r.Outputs {
		row("reference", o.Reference)
		row("engine", o.Engine)
	}
	text += ui.Table(rows)
	for _, o := range r.Outputs {
		text += "\n" + replayedOutput(o)
	}
	if r.Saved != "" {
		text += "\nsaved as " + ui.Plain(r.Saved) + "\n"
	}
	return text
}

func replayedOutput(o diagnose.ReplayedOutput) string {
	if o.Problem != "" {
		return ui.Plain(o.Name+": not compared: "+o.Problem) + "\n"
	}
	text := fmt.Sprintf("%s: %s, largest error %.4g\n", ui.Plain(o.Name), decibels(o.SNRdB), float64(o.MaxAbs))
	if w := o.Worst; w != nil {
		text += fmt.Sprintf("  worst element at %v: reference model %.6g, engine %.6g\n", w.Index, float64(w.Reference), float64(w.Engine))
	}
	if w := o.Reported; w != nil {
		text += fmt.Sprintf("  the report has at %v: reference model %.6g, engine %.6g\n", w.Index, float64(w.Reference), float64(w.Engine))
	}
	rows := [][]string{}
	for _, check := range o.Checks {
		rows = append(rows, []string{"  " + check.Figure, validators.ValueText(check, float64(check.Value)), validators.LimitText(check),
			string(check.Verdict)})
	}
	if len(rows) > 0 {
		text += ui.Table(rows)
	}
	return text
}
