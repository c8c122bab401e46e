package build

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// countConverted runs the framework of the source a second time, on the cases as engines take them, and notes in golden how many
// answers that alone changes. It does nothing if the cases have the types of engines.
func countConverted(ctx context.Context, m Maker, to run.Reporter, golden *goldenset.Set) error {
	set := m.Inputs.Cases
	if !set.Converted() {
		return nil
	}
	driver, job, kind, _ := referenceRun(m)
	job.Inputs = slices.Concat(m.Inputs.Imported.Source.Files, set.Engines())
	step, err := m.Do(ctx, to, driver, run.Task{Name: "run the reference on converted cases", Job: job, Options: job.Options})
	if err != nil {
		return m.Inputs.Cases.NamedIn(err)
	}
	second := goldenset.Set{Set: golden.Set}
	for _, shard := range golden.Set.Shards {
		file, ok := step.Outcome.File("outputs/" + run.ReferenceID + "/" + shard.File)
		if !ok {
			return registry.Errorf(registry.CodeInternal, "run the reference on converted cases: no outputs for shard %s", shard.File)
		}
		second.Files = append(second.Files, file)
	}
	answers := make(map[int]bool)
	for _, output := range goldenset.Answering(m.Inputs.Interface) {
		if err := golden.OtherAnswers(second, output, toleranceOf(m), answers); err != nil {
			return registry.Errorf(registry.CodeOf(err), "run the reference on converted cases: output %q: %w", output.Name, err)
		}
	}
	golden.Set.Conversion = &artifact.Conversion{Cases: len(set.Changed), Answers: len(answers)}
	if text := goldenset.ConversionText(golden.Set, kind); text != "" {
		if most := set.MostRounded(); most != "" {
			text += "; " + most + " loses most of its range"
		}
		golden.Warnings = append(golden.Warnings, text)
	}
	return nil
}
