package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

func (a *app) reportCommand() *cobra.Command {
	return command.Group("report", "Show what verify found, or judge a report again", a.reportShowCommand(), a.reportCheckCommand())
}

func (a *app) reportCheckCommand() *cobra.Command {
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
		RunE: func(c *cobra.Command, args []string) error { return a.checkReports(c.Context(), args, o) },
	}
	c.Flags().StringVar(&o.figures, "figures", "", "file of the per-case figures that FILE names")
	c.Flags().StringVar(&o.limits, "limits", "", "limits.json of the release, which FILE was judged by")
	c.Flags().StringVar(&o.engine, "engine", "", "label of one engine of REF, such as linux-amd64-v1/int8 (default all)")
	c.Flags().StringVar(&o.save, "save", "", "folder for bundle.json, figures.safetensors and limits.json of each engine of REF")
	return c
}

// checkOptions are the flags of report check: two for a file, and two for a ref.
type checkOptions struct{ figures, limits, engine, save string }

// checkReports checks a file if there is one of that name, and else a ref.
func (a *app) checkReports(ctx context.Context, args []string, o checkOptions) error {
	if len(args) == 1 && isFile(args[0]) {
		if o.engine != "" || o.save != "" {
			return registry.Errorf(registry.CodeInvalid, "--engine and --save are for a ref, and %s is a file", args[0])
		}
		return a.checkReport(args[0], o)
	}
	if o.figures != "" || o.limits != "" {
		return registry.Errorf(registry.CodeInvalid, "--figures and --limits are for a file with a report: for a ref the registry has them")
	}
	return a.with(ctx, func(i *wiring.Instance) error { return a.checkRef(ctx, i, args, o) })
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

// checkedReport is what report check found.
type checkedReport struct {
	File    string `json:"file,omitempty"`
	Engine  string `json:"engine,omitempty"`  // label, of a ref
	Subject string `json:"subject,omitempty"` // digest of the engine, if the file names it
	validators.Rejudged

	report registry.ParityReport
}

func (a *app) checkReport(file string, o checkOptions) error {
	data, err := a.readReport(file, maxReport)
	if err != nil {
		return err
	}
	var beside validators.Beside
	if o.figures != "" {
		if beside.Figures, err = a.readReport(o.figures, registry.MaxCaseFigures); err != nil {
			return err
		}
	}
	if o.limits != "" {
		if beside.Limits, err = a.readLimits(o.limits); err != nil {
			return err
		}
	}
	checked := checkedReport{File: file}
	if err := checked.check(data, beside); err != nil {
		return registry.Errorf(registry.CodeOf(err), "%s: %w", file, err)
	}
	if err := a.ui.Result(checkedText(checked), checked); err != nil {
		return err
	}
	return checked.err(file)
}

// readLimits reads a file with limits.
func (a *app) readLimits(file string) (*validators.Limits, error) {
	data, err := a.readReport(file, maxReport)
	if err != nil {
		return nil, err
	}
	limits, err := validators.ParseLimits(data)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: %w", file, err)
	}
	return &limits, nil
}

// check judges the report in a document again. Errors: CodeInvalid if there is none, and those of
// validators.RejudgeWith.
func (c *checkedReport) check(data []byte, beside validators.Beside) error {
	predicate, err := c.predicate(data)
	if err == nil {
		err = registry.DecodeSigned(predicate, &c.report)
	}
	if err == nil && c.report.Verdict == "" && c.report.Rules == 0 && len(c.report.Outputs) == 0 {
		err = errors.New("it has no verdict, no version of limits and no outputs")
	}
	if err != nil {
		return registry.Errorf(registry.CodeInvalid,
			"no parity report: %s: want a signed bundle, its statement, or the predicate alone, as JSON", err.Error())
	}
	c.Rejudged, err = validators.RejudgeWith(c.report, beside)
	return err
}

// err is why a report does not hold, or is no pass; nil if it is one.
func (c checkedReport) err(name string) error {
	switch n := len(c.Differences); {
	case n > 0:
		return registry.Errorf(registry.CodeTrust, "%s: it contradicts %s in %s, the first: %s is %s, and %s follows",
			name, c.source(), registry.Count(n, "place"), c.Differences[0].What, c.Differences[0].Said, c.Differences[0].Follows)
	case c.Verdict != registry.VerdictPass:
		return registry.Errorf(registry.CodeLimit, "%s: %s", name, whyNot(c.report.ReportHead))
	}
	return nil
}

// source names the inputs of a comparison.
func (c checkedReport) source() string {
	if c.Recounted {
		return "its counts and per-case figures"
	}
	return "its counts"
}

// whyNot is why a report is no pass.
func whyNot(head registry.ReportHead) string {
	if len(head.Reasons) == 0 {
		return "the verdict is " + string(head.Verdict)
	}
	return head.Reasons[0].Message
}

// maxReport is the size of a report in bytes that is read: that of the largest bundle.
const maxReport = 4 << 20

// readReport reads a file of at most so many bytes that anybody may have written.
func (a *app) readReport(file string, most int64) ([]byte, error) {
	from := a.stdin
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

// predicate takes the predicate out of a bundle or a statement.
func (c *checkedReport) predicate(data []byte) ([]byte, error) {
	var bundle struct {
		Envelope struct {
			Payload []byte `json:"payload"`
		} `json:"dsseEnvelope"`
	}
	if err := registry.DecodeSigned(data, &bundle); err != nil {
		return nil, err
	}
	if len(bundle.Envelope.Payload) > 0 {
		data = bundle.Envelope.Payload
	}
	var statement registry.Statement
	if err := registry.DecodeSigned(data, &statement); err != nil {
		return nil, err
	}
	if statement.Type == "" {
		return data, nil
	}
	if statement.PredicateType != registry.PredicateParity {
		return nil, registry.Errorf(registry.CodeInvalid, "its predicate type is %.100q: want %q", statement.PredicateType, registry.PredicateParity)
	}
	for _, subject := range statement.Subject {
		c.Subject = string(subject.Digest.SHA256())
	}
	return statement.Predicate, nil
}

func checkedText(c checkedReport) string {
	text := "says     " + string(c.Said) + "\nfollows  " + string(c.Verdict) + " from " + registry.Count(c.Checks, "check") + " over " +
		registry.Count(c.report.Cases.Ran, "case") + ", " + confidenceText(c.report) + "\n" + c.besideText()
	if len(c.Differences) == 0 {
		return text
	}
	rows := [][]string{{"WHAT", "SAYS", "FOLLOWS"}}
	for _, d := range c.Differences {
		rows = append(rows, []string{d.What, d.Said, d.Follows})
	}
	return text + "\n" + ui.Table(rows)
}

// besideText says what was computed from per-case figures, and what was not.
func (c checkedReport) besideText() string {
	named, text := c.report.CaseFigures, ""
	switch {
	case c.Recounted:
		text = "         counts and bounds are computed from the per-case figures\n"
	case c.Taken > 0:
		text = "         bounds by a bootstrap, of " + registry.Count(c.Taken, "check") + ", are the report's own: "
		if named == nil || len(named.Digest) == 0 {
			text += "it names no per-case figures\n"
		} else {
			text += "its per-case figures are not at hand\n"
		}
	case named != nil && len(named.Digest) > 0:
		text = "         its per-case figures are not at hand: counts are the report's own\n"
	}
	if !c.ByLimits {
		text += "         the limits are not at hand: one that has no check is not noticed\n"
	}
	if named != nil && named.LeftOut != "" {
		text += "         per-case figures that were left out: " + ui.Plain(named.LeftOut) + "\n"
	}
	return text
}
