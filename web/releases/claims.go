package releases

import (
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/web/page"
)

// evidenceRow is a claim: who says what about which subject.
type evidenceRow struct {
	Subject string
	What    string
	Signer  string
	KeyID   page.Digest // of the signer
	Covers  string      // what it says, and about what
	Role    string      // in which it counts
	Key     page.State
	Time    page.Moment
	Source  string // what shows the time
	Reason  string
	Bundle  page.Digest
	URL     string // of its bytes
}

// quarantine is one that stands.
type quarantine struct{ Subject, Reason, Signer string }

// evidenceRows describes the claims that count, in the order of their subjects.
func evidenceRows(now storage.Clock, in Read) []evidenceRow {
	var all []evidenceRow
	for _, subject := range in.Subjects() {
		for _, c := range in.counted {
			if c.Subject != subject.Digest {
				continue
			}
			at, source := c.Time()
			e := evidenceRow{
				Subject: subject.Name, What: EvidenceName(c.Statement.PredicateType), Signer: signer(c), KeyID: keyID(c), Covers: covers(c), Key: KeyState(c.Key), Time: page.MomentOf(now, at),
				Source: string(source), Reason: registry.PlainText(c.Reason()), Bundle: page.DigestOf(c.Bundle),
				URL: page.ModelAPI(in.Model, "bundle", "environment", in.environment, "digest", string(c.Bundle)),
			}
			if role, ok := c.Issuer(); ok {
				e.Role = string(role)
			}
			all = append(all, e)
		}
	}
	return all
}

// signer names who signed: the person for whom a service signed, or the key by the path that names it.
func signer(c evidence.Claim) string {
	if p := c.Attested(); p != nil {
		return registry.PlainText(p.String())
	}
	if len(c.Keys) > 0 {
		return registry.PlainText(c.Keys[0])
	}
	return registry.PlainText(c.Signer[:min(len(c.Signer), page.ShortDigest)])
}

// KeyState is the state of a signing key as pages show it.
func KeyState(k evidence.KeyState) page.State {
	switch k {
	case evidence.KeyTrusted:
		return page.StateOf(page.ClassGood, string(k))
	case evidence.KeyRetired:
		return page.StateOf(page.ClassWait, string(k))
	}
	return page.StateOf(page.ClassBad, string(evidence.KeyRevoked))
}

// keyID is the identifier of the key that signed.
func keyID(c evidence.Claim) page.Digest {
	id := registry.PlainText(c.Signer)
	return page.Digest{Short: id[:min(len(id), page.ShortDigest)], Full: id}
}

// covers says in words what a claim states.
func covers(c evidence.Claim) string {
	switch c.Statement.PredicateType {
	case evidence.PredicateSign:
		return "the manifest, which names every file by its digest"
	case evidence.PredicateProvenance:
		return "its ingredients, and how it was made"
	case evidence.PredicateTestResult:
		return "the verdict, for other tools"
	case evidence.PredicateParity, evidence.PredicatePerformance:
		what := "that it computes the same as the reference"
		if c.Statement.PredicateType == evidence.PredicatePerformance {
			what = "how long a run takes"
		}
		var head evidence.ReportHead
		if registry.DecodeSigned(c.Statement.Predicate, &head) != nil {
			return what
		}
		return registry.PlainText(what + ": " + string(head.Verdict) + ", with " + head.Runtime.Name + " " + head.Runtime.Version + " on " + head.Node.Kind())
	case evidence.PredicateApproval:
		return "that it may be promoted"
	case evidence.PredicateBreakGlass:
		return "that requirements may be skipped in an emergency"
	case evidence.PredicateQuarantine:
		return "that it must not be used"
	case evidence.PredicateVSA:
		return "the release and every engine of it: that they met the policy"
	}
	return ""
}

// EvidenceName is the name of a kind of evidence in words.
func EvidenceName(predicateType string) string {
	switch predicateType {
	case evidence.PredicateSign:
		return "signature"
	case evidence.PredicateProvenance:
		return "provenance"
	case evidence.PredicateTestResult:
		return "test result"
	case evidence.PredicateParity:
		return "parity report"
	case evidence.PredicatePerformance:
		return "performance report"
	case evidence.PredicateApproval:
		return "approval"
	case evidence.PredicateBreakGlass:
		return "break-glass approval"
	case evidence.PredicateQuarantine:
		return "quarantine"
	case evidence.PredicateVSA:
		return "verification summary"
	case evidence.PredicateRestrictions:
		return "restriction list"
	case trust.PredicateTrustBundle:
		return "trust bundle"
	}
	return predicateType
}
