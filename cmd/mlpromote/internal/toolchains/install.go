package toolchains

import (
	"context"
	"io"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/pipeline/progress"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/toolchain/manifest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
)

// Install makes an install and shows its stages.
func (c Config) Install(ctx context.Context, installer *install.Installer, name string) (install.Record, error) {
	running := progress.Begin(c.UI.Progress, "install "+name, clock.Now)
	stage := ""
	record, err := installer.Install(ctx, name, func(p install.Progress) {
		note := p.Stage
		if p.Bytes > 0 {
			note += ", " + ui.Size(p.Bytes)
		}
		running.Note(note)
		if p.Stage == stage {
			return // it is shown with the time
		}
		stage = p.Stage
		c.UI.Progress(progress.Step{Name: "install " + name, State: progress.Moving, Note: note})
	})
	running.End("", err)
	return record, err
}

// EnterSandbox must run first in a program whose drivers run in a sandbox. It reports whether this process is
// the keeper of one, and with which exit code that ends.
func EnterSandbox() (exit int, keeper bool) { return sandbox.Enter() }

// RunORT is the child process that runs ONNX Runtime. It returns the exit code.
func RunORT(ctx context.Context, in io.Reader, out io.Writer) int { return ort.Main(ctx, in, out) }

// RunManifest is the child process that runs the compiler of a manifest. It returns the exit code.
func RunManifest(ctx context.Context, in io.Reader, out io.Writer) int {
	return manifest.Main(ctx, in, out)
}
