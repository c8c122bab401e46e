package proving

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

func reportCommand(a *program.App) *cobra.Command {
	return command.Group("report", "Show what verify found, or judge a report again", reportShowCommand(a), reportCheckCommand(a))
}

func reportCheckCommand(a *program.App) *cobra.Command {
	var o checkOptions
	c := &cobra.Command{
		Use:   "check [FILE | REF]",
		Short: "Judge parity reports again, without the engine",
		Long: `Computes the bounds and the verdict of every limit again, from the counts, the attempts and
the confidence in the report, and compares them with the report's. With the per-case
figures that the report names, it computes all counts and the bounds of bootstraps from these too.
With the limits, it names limits without a check.

FILE is a signed bundle, its statement, or the predicate alone, as JSON; - is standard input.
--figures and --limits name the other files. A REF, by default of the last build here, stands for
the newest reports of trusted verifiers about its engines; figures and limits are then those that
the registry has, and --save keeps all three for somebody else to compute.

The signer of a FILE is not checked: mlpromote trust does that.

Exit code 5: the report contradicts its figures, or the figures are not the ones that it
names. 3: its verdict is no pass.`,
		Example: `  mlpromote report check staging/vision/digits:1.0.0
  mlpromote report check bundle.json --figures figures.safetensors --limits limits.json
  mlpromote inspect --output json | jq '.engines[0].parity' | mlpromote report check -`,
		Args: command.AtMost("FILE or REF"),
		RunE: func(c *cobra.Command, args []string) error { return checkReports(c.Context(), a, args, o) },
	}
	c.Flags().StringVar(&o.figures, "figures", "", "file of the per-case figures that FILE names")
	c.Flags().StringVar(&o.limits, "limits", "", "limits.json of the release, which FILE was judged by")
	c.Flags().StringVar(&o.engine, "engine", "", "label of one engine of REF, such as linux-amd64-v1/int8 (default all)")
	c.Flags().StringVar(&o.save, "save", "", "folder for bundle.json, figures.safetensors and limits.json of each engine of REF")
	return c
}

// checkReports checks a file if there is one of that name, and else a ref.
func checkReports(ctx context.Context, a *program.App, args []string, o checkOptions) error {
	if len(args) == 1 && isFile(args[0]) {
		if o.engine != "" || o.save != "" {
			return registry.Errorf(registry.CodeInvalid, "--engine and --save are for a ref, and %s is a file", args[0])
		}
		return checkReport(a, args[0], o)
	}
	if o.figures != "" || o.limits != "" {
		return registry.Errorf(registry.CodeInvalid, "--figures and --limits are for a file with a report: for a ref the registry has them")
	}
	return a.With(ctx, func(i *wiring.Instance) error { return checkRef(ctx, a, i, args, o) })
}

// isFile reports whether an argument means a file: there is one, or it can be no ref.
func isFile(name string) bool {
	if name == "-" {
		return true
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return true
	}
	_, err := registry.ParseRef(name)
	return err != nil
}

func checkReport(a *program.App, file string, o checkOptions) error {
	data, err := readReport(a, file, maxReport)
	if err != nil {
		return err
	}
	var beside validators.Beside
	if o.figures != "" {
		if beside.Figures, err = readReport(a, o.figures, evidence.MaxCaseFigures); err != nil {
			return err
		}
	}
	if o.limits != "" {
		if beside.Limits, err = readLimits(a, o.limits); err != nil {
			return err
		}
	}
	checked := checkedReport{File: file}
	if err := checked.check(data, beside); err != nil {
		return registry.Errorf(registry.CodeOf(err), "%s: %w", file, err)
	}
	if err := a.UI.Result(checkedText(checked), checked); err != nil {
		return err
	}
	return checked.err(file)
}

// readLimits reads a file with limits.
func readLimits(a *program.App, file string) (*validators.Limits, error) {
	data, err := readReport(a, file, maxReport)
	if err != nil {
		return nil, err
	}
	limits, err := validators.ParseLimits(data)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: %w", file, err)
	}
	return &limits, nil
}

// maxReport is the size of a report in bytes that is read: that of the largest bundle.
const maxReport = 4 << 20

// readReport reads a file of at most so many bytes that anybody may have written.
func readReport(a *program.App, file string, most int64) ([]byte, error) {
	from := a.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "report: %w", err)
		}
		defer f.Close()
		from = f
	}
	data, err := io.ReadAll(io.LimitReader(from, most+1))
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "report: %w", err)
	}
	if int64(len(data)) > most {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: more than %d bytes, and no report, figures or limits are so large", file, most)
	}
	return data, nil
}
