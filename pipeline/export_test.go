package pipeline

import (
	"context"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// SpecQuantize says the driver's options for a target in the words of a spec.
func SpecQuantize(options map[string]any, target registry.Target, exclude []string) string {
	return specQuantize(options, target, exclude).Flow()
}

// Again does a step that a build took once more and gives its class: the step is job, done by
// driver; runner, of this profile, runs what it leaves on a file of cases.
func Again(ctx context.Context, driver, runner toolchain.Driver, profile toolchain.Profile,
	job toolchain.Job, cases string, count int, scratch string) (registry.Reproducibility, error) {
	m := maker{worker: worker{scratch: scratch}}
	shard, err := toolchain.FileInput(toolchain.RoleCases, "cases-00000.safetensors", cases)
	if err != nil {
		return "", err
	}
	m.inputs.Cases.Add(shard, count)
	first, err := driver.Do(ctx, job, scratch+"/first")
	if err != nil {
		return "", err
	}
	s := takenStep{name: "step", outcome: first, driver: driver, job: job}
	err = m.again(ctx, (&Pipeline{}).report(), &s, runner, profile)
	return s.reproducible, err
}
