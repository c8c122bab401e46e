package evidence

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// Role is what a key or identity is trusted to say.
type Role string

// The roles. Each may issue the predicate types that [RoleFor] names.
const (
	RoleBuilder  Role = "builder"
	RoleVerifier Role = "verifier"
	RoleApprover Role = "approver"
	RolePromoter Role = "promoter"
	// RoleAttester is a service that signs for people who signed in. A statement of this role names the
	// person. Each environment says whose count: see [policy.AttestedRule]. A key with this role has no other.
	RoleAttester Role = "attester"
	// RolePublisher signs trust bundles, and no evidence. A key with this role has no other.
	RolePublisher Role = "publisher"
)

// Roles returns all roles of evidence, in the order in which a release gets it.
func Roles() []Role {
	return []Role{RoleBuilder, RoleVerifier, RoleApprover, RolePromoter, RoleAttester}
}

// KeyRoles returns all roles that a key can have: those of evidence, and [RolePublisher].
func KeyRoles() []Role { return append(Roles(), RolePublisher) }

// The predicate types of evidence.
const (
	PredicateSign        = "https://sigstore.dev/cosign/sign/v1"             // cosign v3
	PredicateProvenance  = "https://slsa.dev/provenance/v1"                  // SLSA 1.0
	PredicateTestResult  = "https://in-toto.io/attestation/test-result/v0.1" // in-toto, a summary for other tools
	PredicateParity      = "https://mlpromote.dev/parity/v1"                 // what policy reads
	PredicatePerformance = "https://mlpromote.dev/performance/v1"
	PredicateApproval    = "https://mlpromote.dev/approval/v1"
	PredicateBreakGlass  = "https://mlpromote.dev/break-glass/v1"
	PredicateQuarantine  = "https://mlpromote.dev/quarantine/v1"
	PredicateVSA         = "https://slsa.dev/verification_summary/v1" // SLSA verification summary
	// PredicateRestrictions is about an environment, and attached to nothing: see [RestrictionList].
	PredicateRestrictions = "https://mlpromote.dev/restrictions/v1"
)

// RoleFor returns the role that may issue a predicate type. An unknown type has no role, so
// evidence of that type never counts.
func RoleFor(predicateType string) (Role, bool) {
	switch predicateType {
	case PredicateSign, PredicateProvenance:
		return RoleBuilder, true
	case PredicateTestResult, PredicateParity, PredicatePerformance:
		return RoleVerifier, true
	case PredicateApproval, PredicateBreakGlass, PredicateQuarantine, PredicateRestrictions:
		return RoleApprover, true
	case PredicateVSA:
		return RolePromoter, true
	}
	return "", false
}

// Spreads reports whether evidence of a predicate type is attached in every environment that
// has its subject. That is evidence that can withdraw an engine from nodes or restore it.
func Spreads(predicateType string) bool {
	return predicateType == PredicateParity || predicateType == PredicatePerformance ||
		predicateType == PredicateQuarantine
}

// Statement is an in-toto Statement v1.
type Statement struct {
	Type          string             `json:"_type"`
	Subject       []StatementSubject `json:"subject"`
	PredicateType string             `json:"predicateType"`
	Predicate     json.RawMessage    `json:"predicate"`
}

// StatementType is the _type of an in-toto Statement v1.
const StatementType = "https://in-toto.io/Statement/v1"

// StatementSubject is an in-toto ResourceDescriptor with a digest set.
type StatementSubject struct {
	Name   string    `json:"name,omitempty"`
	Digest DigestSet `json:"digest"`
}

// DigestSet is a digest as in-toto writes it: a map from algorithm to hex.
type DigestSet map[string]string

// NewDigestSet converts d. The empty Digest gives an empty set.
func NewDigestSet(d registry.Digest) DigestSet {
	if d == "" {
		return nil
	}
	return DigestSet{string(d.Algorithm()): d.Encoded()}
}

// SHA256 returns the SHA-256 digest, or "".
func (s DigestSet) SHA256() registry.Digest {
	if hex := s[string(digest.SHA256)]; hex != "" {
		return digest.NewDigestFromEncoded(digest.SHA256, hex)
	}
	return ""
}

// Names reports whether the set contains d.
func (s DigestSet) Names(d registry.Digest) bool {
	algorithm, hex, _ := strings.Cut(string(d), ":")
	return hex != "" && s[algorithm] == hex && isHex(hex, digest.Algorithm(algorithm))
}

// isHex reports whether text is a hash of the algorithm. It does what Digest.Validate does with
// a regular expression, but faster: policy checks every digest of every statement.
func isHex(text string, algorithm digest.Algorithm) bool {
	other := func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') }
	return algorithm.Available() && len(text) == 2*algorithm.Size() && !strings.ContainsFunc(text, other)
}

// NewStatement returns the statement that makes the predicate about the subjects, in canonical
// JSON, ready to sign.
func NewStatement(predicateType string, predicate any, subjects ...StatementSubject) ([]byte, error) {
	body, err := registry.CanonicalJSON(predicate)
	if err != nil {
		return nil, err
	}
	return registry.CanonicalJSON(Statement{Type: StatementType, Subject: subjects, PredicateType: predicateType, Predicate: body})
}

// About reports whether the statement has d among its subjects.
func (s Statement) About(d registry.Digest) bool {
	for _, subject := range s.Subject {
		if subject.Digest.Names(d) {
			return true
		}
	}
	return false
}

// Bundle is one piece of evidence as it is stored: a sigstore bundle.
type Bundle struct {
	Digest        registry.Digest // of the referrer manifest that holds it; empty before it is stored
	Document      registry.Digest // of Data; empty before it is stored
	PredicateType string          // as the manifest's annotation claims, if it has one; not verified
	Data          []byte          // the bundle document
	// Figures are the per-case figures that the report in the bundle names; nil where there are none, or
	// where only the bundle was asked for. Not verified: see [CaseFigures.CheckFile].
	Figures []byte
	// Manifest has the exact bytes of the referrer manifest, where one bundle was asked for or the catalog keeps it.
	Manifest []byte
	// Kept are the environments for which the catalog keeps it ([AdverseEvidence]). Unlisted is true if the repository
	// does not list it, so that only the catalog has it.
	Kept     []string
	Unlisted bool
}

// Claim is a bundle whose signature verified, with the roles of its signer.
type Claim struct {
	Bundle    registry.Digest `json:"bundle"`  // of the referrer manifest
	Subject   registry.Digest `json:"subject"` // the manifest that it is attached to
	Statement Statement       `json:"statement"`
	Signer    string          `json:"signer"` // key identifier
	// Keys are the paths by which trust entries name the signer's key.
	Keys  []string `json:"keys,omitempty"`
	Roles []Role   `json:"roles"` // the signer's roles for the resource; may be empty
	// Key is the state of the signer's key. The code that verifies the signature sets it.
	Key KeyState `json:"key,omitempty"`
	// RetiredAt is when the key was retired; set if Key is KeyRetired.
	RetiredAt time.Time `json:"retiredAt,omitzero"`
	// Window is when statements of the signer count. The code that verifies the signature sets it.
	Window Window `json:"window,omitzero"`
	// Stamped is when an authority or log that is trusted for timestamps had seen the signature, or
	// zero. The code that verifies the signature sets it.
	Stamped time.Time `json:"stamped,omitzero"`
	// Recorded is the number of the first event in the history that names the bundle, or 0. It
	// orders evidence. A signer can claim any time, but cannot change when the catalog first
	// recorded the bundle.
	Recorded int64 `json:"recorded,omitempty"`
	// WithoutHistory is true if there is no history, as in a pulled folder. Only then the time
	// that the signer claims is used. If there is a history, the time of a claim that it does not
	// name is unknown.
	WithoutHistory bool `json:"withoutHistory,omitempty"`
	// RecordedAt is the time of that event, by the clock of the process that recorded it. If
	// Recorded is 0, it is the time at which the bundle was read, or zero.
	RecordedAt time.Time `json:"recordedAt,omitzero"`
	// Observed is the number of the event that the History of a report or approval names, or 0 if the catalog
	// has no such event.
	Observed int64 `json:"observed,omitempty"`
}

// SignedAs reports whether the signer has the role for the resource. It says nothing about the
// state of the key: a retired or revoked key keeps its roles. [Accept] says whether a claim about
// a release counts.
func (c Claim) SignedAs(role Role) bool { return role != "" && slices.Contains(c.Roles, role) }

// SignedNowAs reports whether the signer has the role, with a key that is trusted at RecordedAt, when
// the claim was read. It is for claims about which nothing says when they were made.
func (c Claim) SignedNowAs(role Role) bool {
	return c.Key == KeyTrusted && c.SignedAs(role) && c.Window.Contains(c.RecordedAt)
}

// KeyState says which signatures of a key still count. The zero KeyState counts for as little
// as [KeyRevoked].
type KeyState string

// The states of a key.
const (
	KeyTrusted KeyState = "trusted"
	// KeyRetired: all claims against a release count. Other claims count if they were recorded
	// before the key was retired.
	KeyRetired KeyState = "retired"
	// KeyRevoked: only claims against a release count. These are quarantines and failing reports.
	KeyRevoked KeyState = "revoked"
)

// KeyStates lists the states that a trust entry may name, strongest first.
func KeyStates() []KeyState { return []KeyState{KeyTrusted, KeyRetired, KeyRevoked} }

// Ignored is evidence that does not count, with the reason. It does not block anything.
type Ignored struct {
	Bundle  registry.Digest `json:"bundle"`
	Subject registry.Digest `json:"subject"`
	Reason  string          `json:"reason"`
}

// Verdict is the outcome of a validation. The zero Verdict is VerdictUndecided;
// only VerdictPass counts as a pass.
type Verdict string

// The verdicts.
const (
	VerdictUndecided Verdict = "undecided"
	VerdictPass      Verdict = "pass"
	VerdictFail      Verdict = "fail"
	VerdictRecorded  Verdict = "recorded" // measured without a limit
)

// UnmarshalJSON refuses unknown verdicts. The empty text is the zero Verdict.
func (v *Verdict) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	switch read := Verdict(text); read {
	case "", VerdictUndecided, VerdictPass, VerdictFail, VerdictRecorded:
		*v = read
		return nil
	}
	return fmt.Errorf("verdict %.40q: want pass, fail, undecided or recorded", text)
}

// Reason is one exceeded limit, or why a validation has no result.
type Reason struct {
	Code    string `json:"code"`            // "limit_exceeded", "accuracy_drop", "new_nan", "shape", "too_few_cases", "not_run", "jitter", "batch", "dimension"
	Trial   Trial  `json:"trial,omitempty"` // that it is about, if it is about one beyond the run of all cases
	Output  string `json:"output,omitempty"`
	Figure  string `json:"figure,omitempty"` // "cosine", "maxAbs", ...
	Limit   Figure `json:"limit,omitempty"`
	Value   Figure `json:"value,omitempty"`
	Case    int    `json:"case"`
	Message string `json:"message"`
}
