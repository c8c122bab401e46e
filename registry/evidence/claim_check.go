package evidence

import (
	"fmt"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// HistorySeen returns the hash of the newest event that the verifier of a report could see when
// it began, or that the signer of an approval saw, or "".
func (c Claim) HistorySeen() registry.Digest {
	read, _ := ReadReport(c)
	if a, ok := c.Approval(); ok {
		read.History = a.History
	}
	hex, ok := read.History[string(digest.SHA256)]
	if !ok {
		return ""
	}
	return digest.NewDigestFromEncoded(digest.SHA256, hex)
}

// CheckTexts checks the texts of a new claim that others will read: the reasons of reports and
// quarantines, and what approvals say. It skips unreadable claims, which CheckNew refuses; break-glass
// approvals with a bad text are among them. Errors: CodeInvalid.
func (c Claim) CheckTexts() error {
	if q, ok := c.Quarantine(); ok {
		return registry.ValidateText("quarantine: the reason", q.Reason)
	}
	var a Approval
	if c.Statement.PredicateType == PredicateApproval && registry.DecodeSigned(c.Statement.Predicate, &a) == nil {
		return a.Validate()
	}
	read, _ := ReadReport(c)
	for i, r := range read.Reasons {
		for _, text := range []string{r.Message, r.Code, r.Output, r.Figure} {
			if err := registry.ValidateText(fmt.Sprintf("report: reason %d", i+1), text); err != nil {
				return err
			}
		}
	}
	return nil
}

// Reason returns the reason of a claim as the history shows it: that of a quarantine, that of a lift
// after "lifted: ", and the comment of an approval after "for ENVIRONMENT/MODEL: " or "withdrawn
// for ENVIRONMENT/MODEL: ". Before what a service signed for a person stands who that is. Other
// claims have no reason.
func (c Claim) Reason() string {
	reason := c.reason()
	if p := c.Attested(); p != nil {
		return registry.PlainText(p.String() + ", according to the service: " + reason)
	}
	return reason
}

func (c Claim) reason() string {
	if a, ok := c.Approval(); ok {
		return registry.PlainText(a.reason())
	}
	if b, ok := c.BreakGlass(); ok {
		return registry.PlainText(b.Reason())
	}
	q, _ := c.Quarantine()
	if q.Reason != "" && len(q.Lifts) > 0 {
		q.Reason = "lifted: " + q.Reason
	}
	return registry.PlainText(q.Reason)
}
