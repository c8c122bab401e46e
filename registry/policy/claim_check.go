package policy

import (
	"fmt"
	"math"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// checkNewApproval checks that a new approval can be read, and that its times fit the one at which it
// is recorded.
func checkNewApproval(c evidence.Claim) error {
	var a evidence.Approval
	if err := registry.DecodeSigned(c.Statement.Predicate, &a); err != nil {
		return err
	}
	return checkTimes(a.ApprovedOn, a.ExpiresOn, c.RecordedAt)
}

// checkNewBreakGlass checks that a new statement can be read, and that its times fit the one at which
// it is recorded.
func checkNewBreakGlass(c evidence.Claim) error {
	b, err := c.ReadBreakGlass()
	if err != nil {
		return err
	}
	if err := checkSkips(b); err != nil {
		return err
	}
	return checkTimes(b.ApprovedOn, b.ExpiresOn, c.RecordedAt)
}

// CheckNew checks a new claim, at its RecordedAt. It must be readable, the state of its key
// must let it count, and a pass must not end after it is recorded. Errors: CodeTrust.
func CheckNew(c evidence.Claim) error {
	c.Recorded = math.MaxInt64 // it gets a number when it is recorded
	read, isReport := evidence.ReadReport(c)
	switch {
	case isReport && read.Fault != nil:
		return registry.Errorf(registry.CodeTrust, "report: %w", read.Fault)
	case isReport && read.Passes() && !c.RecordedAt.IsZero() && registry.ClaimsFuture(read.FinishedOn, c.RecordedAt):
		return registry.WithHint(
			registry.Errorf(registry.CodeTrust, "report: it says that it passed on %s, but now it is %s", registry.UTC(read.FinishedOn), registry.UTC(c.RecordedAt)),
			"set the clock of the verifier, or of this machine, and verify again")
	}
	var err error
	switch c.Statement.PredicateType {
	case evidence.PredicateVSA:
		_, err = c.Vsa()
	case evidence.PredicateQuarantine:
		err = registry.DecodeSigned(c.Statement.Predicate, &evidence.Quarantine{})
	case evidence.PredicateApproval:
		err = checkNewApproval(c)
	case evidence.PredicateBreakGlass:
		err = checkNewBreakGlass(c)
	}
	if err != nil {
		return registry.Errorf(registry.CodeTrust, "predicate %s: %w", c.Statement.PredicateType, err)
	}
	if why := c.KeyRefuses(); why != "" {
		return registry.WithHint(registry.Errorf(registry.CodeTrust, "%s", why), "sign with the key that replaced it")
	}
	return nil
}

// checkTimes checks when an approval was given and expires against the time at which it is recorded,
// if that is known.
func checkTimes(given, expires, at time.Time) error {
	switch {
	case at.IsZero():
	case registry.ClaimsFuture(given, at):
		return fmt.Errorf("it says that it was given on %s, but now it is %s: set the clock of the approver, or of this machine", registry.UTC(given), registry.UTC(at))
	case !expires.IsZero() && !at.Before(expires):
		return fmt.Errorf("it expired on %s, and now it is %s", registry.UTC(expires), registry.UTC(at))
	}
	return nil
}
