package cireport

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
)

// Verb is what the command needs.
type Verb struct {
	UI      *ui.UI
	Version string // of the program
	// With opens the registry that the flags name, runs verb on it and closes it.
	With func(ctx context.Context, verb func(*wiring.Instance) error) error
	// Reference reads the ref among arguments, or that of the last build.
	Reference func(i *wiring.Instance, args []string) (registry.Ref, error)
}

// Documents are the types of what the command prints with --output json.
func Documents() map[string][]reflect.Type {
	return map[string][]reflect.Type{"ci report": {reflect.TypeFor[Report]()}}
}

// Command says what a promotion would change and what it lacks.
func (v Verb) Command() *cobra.Command {
	var to, format, out, spec string
	var perHour float64
	c := &cobra.Command{
		Use:   "report [REF]",
		Short: "Report the changes and unmet requirements of a promotion, for a comment or a CI system",
		Long: `Decides as promote --dry-run does, and compares each engine with the engine of its label in the destination:
limits, accuracy, latency and size. It lists limits and interface that changed, node types that get
another engine, and each requirement that is unmet with the command that meets it. It reports the steps of each
engine that were built or taken from a cache, their time, and the inputs in which the build differs from the present engine's.
REF defaults to the last build here.

--format: markdown (a comment of at most 60 KB), junit, sarif, codequality or annotations (GitLab), github (commands in
the log of a job, which mark lines of the spec), or json. --out
writes it to a file. The exit code is 0 whether the promotion is allowed or not: "allowed" of json has the answer,
and promote decides.`,
		Example: "  mlpromote ci report --to prod --out comment.md\n  mlpromote ci report staging/vision/digits:1.1.0 --format junit --out report.xml",
		Args:    command.AtMost("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(formats(), format) {
				return registry.Errorf(registry.CodeInvalid, "--format %q: want one of %s", format, strings.Join(formats(), ", "))
			}
			if !(perHour >= 0 && perHour < 1e9) {
				return registry.Errorf(registry.CodeInvalid, "--price-per-hour %v: want the price of an hour, 0 or more", perHour)
			}
			return v.With(c.Context(), func(i *wiring.Instance) error {
				ref, err := v.Reference(i, args)
				if err != nil {
					return err
				}
				report, err := Of(c.Context(), i, ref, to)
				if err != nil {
					return err
				}
				report.price(perHour)
				return v.print(report, format, out, ReadSpec(spec))
			})
		},
	}
	c.Flags().StringVar(&to, "to", "", "environment to promote to (default: the only edge there is)")
	c.Flags().StringVar(&format, "format", "markdown", strings.Join(formats(), ", "))
	c.Flags().StringVarP(&out, "out", "o", "", "file to write (default: stdout)")
	c.Flags().Float64Var(&perHour, "price-per-hour", 0, "price of an hour of the runner, for the cost of the build; 0: unknown")
	c.Flags().StringVar(&spec, "spec", "mlpromote.yaml", "spec of the release; findings point to its lines")
	return c
}

func formats() []string {
	return []string{"markdown", "junit", "sarif", "codequality", "annotations", "github", "json"}
}

func (v Verb) print(r Report, format, out string, spec Spec) error {
	var text []byte
	var err error
	switch format {
	case "markdown":
		text = []byte(Markdown(r))
	case "junit":
		text, err = JUnit(r)
	case "sarif":
		text, err = SARIF(r, spec, v.Version)
	case "codequality":
		text, err = CodeQuality(r, spec)
	case "annotations":
		text, err = Annotations(r)
	case "github":
		text = Commands(r, spec)
	default:
		text, err = indented(r)
	}
	if err != nil {
		return fmt.Errorf("%s of %s: %w", format, r.Release, err)
	}
	if out == "" {
		return v.UI.Result(string(text), r)
	}
	if err := atomicfile.Write(out, text, os.FileMode(0o644)); err != nil {
		return err
	}
	return v.UI.Result(ui.Plain(out), r)
}
