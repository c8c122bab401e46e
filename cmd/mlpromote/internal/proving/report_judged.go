package proving

import (
	"errors"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// checkOptions are the flags of report check: two for a file, and two for a ref.
type checkOptions struct{ figures, limits, engine, save string }

// checkedReport is what report check found.
type checkedReport struct {
	File    string `json:"file,omitempty"`
	Engine  string `json:"engine,omitempty"`  // label, of a ref
	Subject string `json:"subject,omitempty"` // digest of the engine, if the file names it
	validators.Rejudged

	report evidence.ParityReport
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
	case c.Verdict != evidence.VerdictPass:
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
func whyNot(head evidence.ReportHead) string {
	if len(head.Reasons) == 0 {
		return "the verdict is " + string(head.Verdict)
	}
	return head.Reasons[0].Message
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
	var statement evidence.Statement
	if err := registry.DecodeSigned(data, &statement); err != nil {
		return nil, err
	}
	if statement.Type == "" {
		return data, nil
	}
	if statement.PredicateType != evidence.PredicateParity {
		return nil, registry.Errorf(registry.CodeInvalid, "its predicate type is %.100q: want %q", statement.PredicateType, evidence.PredicateParity)
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
