package registry

import (
	"encoding/json"
	"slices"
	"time"
)

// VSA is the predicate of a SLSA verification summary: that a release and its
// engines met the policy of the environment at ResourceURI. A VSA allows; only a
// head chooses. Source: https://slsa.dev/spec/v1.0/verification_summary.
type VSA struct {
	Verifier           VSAVerifier     `json:"verifier"`
	TimeVerified       time.Time       `json:"timeVerified"`
	ResourceURI        string          `json:"resourceUri"`
	Policy             VSAPolicy       `json:"policy"`
	InputAttestations  []VSADescriptor `json:"inputAttestations,omitempty"`
	VerificationResult string          `json:"verificationResult"` // "PASSED" or "FAILED"
	VerifiedLevels     []string        `json:"verifiedLevels"`
	SLSAVersion        string          `json:"slsaVersion"`
	Promotion          VSAPromotion    `json:"mlpromote_promotion"`
}

// VSAVerifier is who decided.
type VSAVerifier struct {
	ID      string            `json:"id"`
	Version map[string]string `json:"version"`
}

// VSAPolicy is the policy that was met.
type VSAPolicy struct {
	URI    string    `json:"uri"`
	Digest DigestSet `json:"digest"`
}

// VSADescriptor names one input by digest.
type VSADescriptor struct {
	Digest DigestSet `json:"digest"`
}

// VSAPromotion is our extension: what moved, and what the promoter had read.
type VSAPromotion struct {
	From         string    `json:"from"`
	Tag          string    `json:"tag"`
	Sources      DigestSet `json:"sources"`
	PreviousHead DigestSet `json:"previousHead,omitempty"`
	HistoryHead  DigestSet `json:"historyHead,omitempty"`
}

// Results and levels of a VSA.
const (
	VSAPassed      = "PASSED"
	VSALevelParity = "MLPROMOTE_PARITY"
	SLSAVersion    = "1.0"
)

// FindVSA gives the claim that allows the release at the resource: a summary by a
// trusted promoter, about the release and every engine of it, that passed, bound to
// this very resource. Of several the latest wins. Without one, ok is false.
func FindVSA(claims []Claim, r Release, resource string) (found Claim, summary VSA, ok bool) {
	for _, c := range claims {
		if c.Subject != r.Digest || c.Statement.PredicateType != PredicateVSA || !slices.Contains(c.Roles, RolePromoter) {
			continue
		}
		var v VSA
		if json.Unmarshal(c.Statement.Predicate, &v) != nil || v.ResourceURI != resource || v.VerificationResult != VSAPassed {
			continue
		}
		if coversAll(c.Statement, r) && (!ok || v.TimeVerified.After(summary.TimeVerified)) {
			found, summary, ok = c, v, true
		}
	}
	return found, summary, ok
}

func coversAll(s Statement, r Release) bool {
	for _, subject := range r.Subjects() {
		if !s.About(subject.Digest) {
			return false
		}
	}
	return true
}
