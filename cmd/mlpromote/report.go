package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

func (a *app) reportCommand() *cobra.Command {
	return command.Group("report", "Show what verify found, or judge a report again", a.reportShowCommand(), a.reportCheckCommand())
}

func (a *app) reportCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Judge a parity report again by its own counts, without the engine",
		Long: `Computes the bounds and the verdict of every limit again, from the counts, the attempts and
the confidence in the report, and compares them with what the report says. FILE is a signed bundle,
its statement, or the predicate alone, as JSON; - is standard input. It needs limits of version 2.

Nothing is said about who signed the report: mlpromote trust does that.

Exit code 5: the report says something else than its counts give. 3: its verdict is no pass.`,
		Example: "  mlpromote report check bundle.json\n  mlpromote inspect --output json | jq '.engines[0].parity' | mlpromote report check -",
		Args:    command.Exactly("FILE"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.checkReport(args[0]) },
	}
}

// checkedReport is what report check found.
type checkedReport struct {
	File    string `json:"file"`
	Subject string `json:"subject,omitempty"` // digest of the engine, if the file names it
	validators.Rejudged
}

func (a *app) checkReport(file string) error {
	data, err := a.readReport(file)
	if err != nil {
		return err
	}
	checked := checkedReport{File: file}
	predicate, err := checked.predicate(data)
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "%s: %s", file, err.Error())
	}
	var report registry.ParityReport
	if err := registry.DecodeSigned(predicate, &report); err != nil {
		return registry.Errorf(registry.CodeInvalid, "%s: %s", file, err.Error())
	}
	if checked.Rejudged, err = validators.Rejudge(report); err != nil {
		return registry.Errorf(registry.CodeInvalid, "%s: %w", file, err)
	}
	if err := a.ui.Result(checkedText(checked, report), checked); err != nil {
		return err
	}
	switch n := len(checked.Differences); {
	case n > 0:
		return registry.Errorf(registry.CodeTrust, "%s: it says something else than its counts give in %s, the first: %s is %s, and %s follows",
			file, registry.Count(n, "place"), checked.Differences[0].What, checked.Differences[0].Said, checked.Differences[0].Follows)
	case checked.Verdict != registry.VerdictPass:
		return registry.Errorf(registry.CodeLimit, "%s: %s", file, whyNot(report.ReportHead))
	}
	return nil
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

// readReport reads a file that anybody may have written.
func (a *app) readReport(file string) ([]byte, error) {
	from := a.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "report: %w", err)
		}
		defer f.Close()
		from = f
	}
	data, err := io.ReadAll(io.LimitReader(from, maxReport+1))
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "report: %w", err)
	}
	if len(data) > maxReport {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: more than %d bytes, and no report is so large", file, maxReport)
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

func checkedText(c checkedReport, report registry.ParityReport) string {
	text := "says     " + string(c.Said) + "\nfollows  " + string(c.Verdict) + " from " + registry.Count(c.Checks, "check") + " over " +
		registry.Count(report.Cases.Ran, "case") + ", " + confidenceText(report) + "\n"
	if c.Taken > 0 {
		text += "         bounds by a bootstrap, of " + registry.Count(c.Taken, "check") + ", are taken as the report says them: they need the outputs\n"
	}
	if len(c.Differences) == 0 {
		return text
	}
	rows := [][]string{{"WHAT", "SAYS", "FOLLOWS"}}
	for _, d := range c.Differences {
		rows = append(rows, []string{d.What, d.Said, d.Follows})
	}
	return text + "\n" + ui.Table(rows)
}
