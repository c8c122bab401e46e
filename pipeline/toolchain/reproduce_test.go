package toolchain_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// dice is echo with something of its own in what it leaves.
type dice struct {
	echo
	name string // of the file that differs from one time to the next; empty for none
}

func (d dice) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	job.Options = map[string]any{"model.onnx": "weights"}
	if d.name != "" {
		job.Options[strings.ReplaceAll(d.name, "#", fmt.Sprint(d.jobs.Load()))] = fmt.Sprint("time ", d.jobs.Load())
	}
	return d.echo.Do(ctx, job, outDir)
}

func TestReproduce(t *testing.T) {
	t.Parallel()
	says := func(equal bool) func(context.Context, toolchain.Outcome) (bool, error) {
		return func(context.Context, toolchain.Outcome) (bool, error) { return equal, nil }
	}
	for name, c := range map[string]struct {
		file string
		same func(context.Context, toolchain.Outcome) (bool, error)
		want evidence.Reproducibility
	}{
		"the same bytes":                {"", says(false), evidence.ReproducibleBytes},
		"other bytes, the same outputs": {"model.bin", says(true), evidence.ReproducibleSemantic},
		"other outputs":                 {"model.bin", says(false), evidence.ReproducibleNone},
		"nothing can run it":            {"model.bin", nil, evidence.ReproducibleNone},
		"files of other names":          {"model-#.bin", says(true), evidence.ReproducibleNone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			driver := dice{newEcho(), c.file}
			first, err := driver.Do(t.Context(), echoJob(), filepath.Join(t.TempDir(), "out"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := toolchain.Reproduce(t.Context(), driver, echoJob(), first, filepath.Join(t.TempDir(), "out"), c.same)
			if err != nil || got != c.want {
				t.Errorf("class %q (%v), want %q", got, err, c.want)
			}
		})
	}
	cached := toolchain.Cache(newEcho(), toolchain.NewStore(t.TempDir()))
	first, err := cached.Do(t.Context(), echoJob(), filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	if class, err := toolchain.Reproduce(t.Context(), cached, echoJob(), first, filepath.Join(t.TempDir(), "out"), nil); err == nil {
		t.Errorf("a remembered step has the class %q", class)
	}
}
