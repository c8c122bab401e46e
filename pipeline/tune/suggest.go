package tune

import (
	"context"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/tempdir"
	"mlpromote.dev/mlpromote/validators"
)

// SuggestLimits makes the engines of a spec, runs those that this machine can run on other cases
// than the verdict's, and returns limits that they would keep with a margin, and which engines fail the default limits. folder has these cases;
// it is below the folder of the spec. Nothing is stored. Errors: CodeInvalid also for cases that are
// among those of the verdict, since limits that follow from them would prove nothing.
func SuggestLimits(ctx context.Context, env *run.Env, s *spec.Spec, folder string) (validators.Suggestion, error) {
	temp, err := tempdir.New("suggest")
	if err != nil {
		return validators.Suggestion{}, err
	}
	defer temp.Remove()
	scratch := temp.Path
	t := &tuning{env: env, began: env.Time(), only: s.Variants}
	if err := t.begin(ctx, s.OnCases(folder), scratch); err != nil {
		return validators.Suggestion{}, err
	}
	verdict, err := t.checkOther(s, scratch)
	if err != nil {
		return validators.Suggestion{}, err
	}
	suggested := validators.NewSuggestion(t.Inputs.Cases.Record.Count, verdict)
	if a := s.Limits.Accuracy; a != nil {
		suggested.Measured = a.MeasuredBy()
	}
	for i, planned := range t.Plan.Engines {
		report, err := t.reportOf(ctx, i, planned)
		if err != nil {
			return validators.Suggestion{}, registry.Errorf(registry.CodeOf(err), "%s/%s: %w", planned.Target.Name, planned.Variant, err)
		}
		if len(report.Outputs) == 0 {
			return validators.Suggestion{}, registry.Errorf(registry.CodeLimit, "%s/%s: %s", planned.Target.Name, planned.Variant, report.Reasons[0].Message)
		}
		suggested.Add(planned.Target.Name+"/"+planned.Variant, planned.Precision, report)
	}
	return *suggested, nil
}

// checkOther checks that no case is one of the verdict, and returns how many those are.
func (t *tuning) checkOther(s *spec.Spec, scratch string) (int, error) {
	if s.Cases.Generate > 0 {
		return s.Cases.Generate, nil // drawn at random, by another seed or not: recorded cases are none of them
	}
	folder := filepath.Join(scratch, "verdict")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return 0, err
	}
	verdict, err := cases.Read(s.Files, s.Cases.Path.Written, toolchain.RoleCases, t.Inputs.Interface, folder)
	if err == nil {
		err = verdict.Convert(t.Inputs.Interface, filepath.Join(folder, "for-engines"))
	}
	if err != nil {
		return 0, err
	}
	return verdict.Record.Count, cases.CheckOther(verdict, t.Inputs.Cases, t.Inputs.Interface)
}

// reportOf makes an engine and compares it with the reference model.
func (t *tuning) reportOf(ctx context.Context, i int, planned plan.Engine) (evidence.ParityReport, error) {
	made, err := build.MakeEngine(ctx, t.Maker, t.env.Report(), planned)
	if err != nil {
		return evidence.ParityReport{}, err
	}
	c := run.Candidate{ID: verify.EngineID(i), Engine: made.Engine, Tool: made.Tool}
	if c.Model, err = run.LoadableOutput(made.Tool.Profile, c.ID, made.Files); err != nil {
		return evidence.ParityReport{}, err
	}
	return t.compared(ctx, c)
}
