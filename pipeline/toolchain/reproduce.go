package toolchain

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Reproduce does a job again, in a process of its own, and compares its files in outDir with
// those of the first time. driver must not use a cache. same runs both results and reports
// whether their outputs are bit for bit equal; it is nil if no driver can run them. Errors:
// those of driver and same.
func Reproduce(ctx context.Context, driver Driver, job Job, first Outcome, outDir string,
	same func(ctx context.Context, second Outcome) (bool, error)) (evidence.Reproducibility, error) {
	second, err := driver.Do(ctx, job, outDir)
	if err != nil {
		return "", err
	}
	if second.Cached {
		return "", registry.Errorf(registry.CodeInternal,
			"%s: the second run came from a cache, so it does not show whether the step is reproducible", job.Verb)
	}
	switch {
	case slices.EqualFunc(first.Files, second.Files, sameBytes):
		return evidence.ReproducibleBytes, nil
	case same == nil || !slices.EqualFunc(first.Files, second.Files, sameName):
		return evidence.ReproducibleNone, nil
	}
	equal, err := same(ctx, second)
	if err != nil {
		return "", err
	}
	if equal {
		return evidence.ReproducibleSemantic, nil
	}
	return evidence.ReproducibleNone, nil
}

func sameName(a, b OutputFile) bool { return a.Name == b.Name }

func sameBytes(a, b OutputFile) bool { return a.Name == b.Name && a.Digest == b.Digest }
