package recording

import (
	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
)

// Run records as the flags say. model is an ONNX file, or empty.
func (f *Flags) Run(c *cobra.Command, u *ui.UI, inputs OfSpec, model string) error {
	if err := f.check(c, model); err != nil {
		return err
	}
	size, err := spec.ParseSize(f.MaxBytes)
	if err != nil || size < 1 {
		return registry.Errorf(registry.CodeInvalid, "--max-bytes %q: want a size, such as 512MiB", f.MaxBytes)
	}
	if f.from != "" && model == "" && f.File == "" {
		f.File = spec.File
	}
	if err := f.checkFile(); err != nil {
		return err
	}
	iface, err := f.inputsOf(c.Context(), model, inputs)
	if err != nil {
		return err
	}
	if f.proxy != "" {
		return f.capture(c.Context(), u, anySize(iface), int64(size))
	}
	return f.take(u, *iface, int64(size))
}
