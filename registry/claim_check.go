package registry

import (
	"fmt"
	"math"

	"github.com/opencontainers/go-digest"
)

// HistorySeen returns the hash of the newest event that the verifier of a report could see when
// it began, or that the signer of an approval saw, or "".
func (c Claim) HistorySeen() Digest {
	read, _ := readReport(c)
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
		return ValidateText("quarantine: the reason", q.Reason)
	}
	var a Approval
	if c.Statement.PredicateType == PredicateApproval && DecodeSigned(c.Statement.Predicate, &a) == nil {
		return a.Validate()
	}
	read, _ := readReport(c)
	for i, r := range read.Reasons {
		for _, text := range []string{r.Message, r.Code, r.Output, r.Figure} {
			if err := ValidateText(fmt.Sprintf("report: reason %d", i+1), text); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckNew checks a new claim, at its RecordedAt. It must be readable, the state of its key
// must let it count, and a pass must not end after it is recorded. Errors: CodeTrust.
func (c Claim) CheckNew() error {
	c.Recorded = math.MaxInt64 // it gets a number when it is recorded
	read, isReport := readReport(c)
	switch {
	case isReport && read.fault != nil:
		return Errorf(CodeTrust, "report: %w", read.fault)
	case isReport && read.passes() && !c.RecordedAt.IsZero() && ClaimsFuture(read.FinishedOn, c.RecordedAt):
		return WithHint(
			Errorf(CodeTrust, "report: it says that it passed on %s, but now it is %s", utc(read.FinishedOn), utc(c.RecordedAt)),
			"set the clock of the verifier, or of this machine, and verify again")
	}
	var err error
	switch c.Statement.PredicateType {
	case PredicateVSA:
		_, err = c.vsa()
	case PredicateQuarantine:
		err = DecodeSigned(c.Statement.Predicate, &Quarantine{})
	case PredicateApproval:
		err = c.checkNewApproval()
	case PredicateBreakGlass:
		err = c.checkNewBreakGlass()
	}
	if err != nil {
		return Errorf(CodeTrust, "predicate %s: %w", c.Statement.PredicateType, err)
	}
	if why := c.keyRefuses(); why != "" {
		return WithHint(Errorf(CodeTrust, "%s", why), "sign with the key that replaced it")
	}
	return nil
}
