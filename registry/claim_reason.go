package registry

// Reason returns the reason of a claim as the history shows it: that of a quarantine, that of a lift
// after "lifted: ", and the comment of an approval after "for ENVIRONMENT/MODEL: " or "withdrawn
// for ENVIRONMENT/MODEL: ". Before what a service signed for a person stands who that is. Other
// claims have no reason.
func (c Claim) Reason() string {
	reason := c.reason()
	if p := c.Attested(); p != nil {
		return PlainText(p.String() + ", according to the service: " + reason)
	}
	return reason
}

func (c Claim) reason() string {
	if a, ok := c.Approval(); ok {
		return PlainText(a.reason())
	}
	if b, ok := c.BreakGlass(); ok {
		return PlainText(b.reason())
	}
	q, _ := c.Quarantine()
	if q.Reason != "" && len(q.Lifts) > 0 {
		q.Reason = "lifted: " + q.Reason
	}
	return PlainText(q.Reason)
}
