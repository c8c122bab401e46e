package evidence

import (
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Skipped says which unmet requirements a promotion skipped, and who agreed to that.
type Skipped struct {
	Requirements []string `json:"requirements"`
	Approvers    []string `json:"approvers"` // as messages show them
	Comments     []string `json:"comments"`
}

// Shown names a release in a message: "release sha256:...", or "no release".
func Shown(release registry.Digest) string {
	if release == "" {
		return "no release"
	}
	return "release " + string(release)
}

// VSA is the predicate of an SLSA verification summary. It states that a release and its
// engines met the policy of the environment at ResourceURI. A VSA only allows a release; the
// head selects it. Source: https://slsa.dev/spec/v1.0/verification_summary.
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

// VSAVerifier identifies the verifier that decided.
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
	// URI is where the input is: the resource with the digest of the bundle's manifest. Empty in older summaries.
	URI    string    `json:"uri,omitempty"`
	Digest DigestSet `json:"digest"`
}

// VSAPromotion is an mlpromote extension: what was promoted, and what the promoter had read.
type VSAPromotion struct {
	From    string    `json:"from"`
	Tag     string    `json:"tag"`
	Sources DigestSet `json:"sources"`
	// Policy is the digest of the rules of the destination alone, in canonical JSON. That of the whole
	// environments.yaml is in VSA.Policy. Empty in older summaries.
	Policy       DigestSet `json:"policy,omitempty"`
	PreviousHead DigestSet `json:"previousHead,omitempty"`
	HistoryHead  DigestSet `json:"historyHead,omitempty"`
	// Skipped are the requirements that were skipped, by whom and why; nil: all were met.
	Skipped *Skipped `json:"skipped,omitempty"`
}

// Results and levels of a VSA.
const (
	VSAPassed          = "PASSED"
	VSALevelParity     = "MLPROMOTE_PARITY"
	VSALevelBreakGlass = "MLPROMOTE_BREAK_GLASS" // requirements were skipped; instead of parity
)

// VerifierID is what summaries of a registry name as their verifier.
func VerifierID(registryName string) string { return "https://mlpromote.dev/service/" + registryName }

// Summary reads the claim as a verification summary. ok is false for other claims and for an
// unreadable summary.
func (c Claim) Summary() (v VSA, ok bool) {
	v, err := c.Vsa()
	return v, err == nil
}

// Vsa reads the claim as a summary.
func (c Claim) Vsa() (VSA, error) {
	if c.Statement.PredicateType != PredicateVSA {
		return VSA{}, registry.Errorf(registry.CodeInvalid, "predicate type %q, want %q", c.Statement.PredicateType, PredicateVSA)
	}
	var v VSA
	if err := registry.DecodeSigned(c.Statement.Predicate, &v); err != nil {
		return VSA{}, err
	}
	return v, nil
}
