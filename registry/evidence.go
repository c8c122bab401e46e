package registry

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
)

// Role is what a key or identity is trusted to say.
type Role string

// The roles. Each may issue the predicate types that [RoleFor] names.
const (
	RoleBuilder  Role = "builder"
	RoleVerifier Role = "verifier"
	RoleApprover Role = "approver"
	RolePromoter Role = "promoter"
)

// Roles returns all roles, in the order in which a release gets their evidence.
func Roles() []Role { return []Role{RoleBuilder, RoleVerifier, RoleApprover, RolePromoter} }

// The predicate types of evidence.
const (
	PredicateSign        = "https://sigstore.dev/cosign/sign/v1"             // cosign v3
	PredicateProvenance  = "https://slsa.dev/provenance/v1"                  // SLSA 1.0
	PredicateTestResult  = "https://in-toto.io/attestation/test-result/v0.1" // in-toto, a summary for other tools
	PredicateParity      = "https://mlpromote.dev/parity/v1"                 // what policy reads
	PredicatePerformance = "https://mlpromote.dev/performance/v1"
	PredicateApproval    = "https://mlpromote.dev/approval/v1"
	PredicateQuarantine  = "https://mlpromote.dev/quarantine/v1"
	PredicateVSA         = "https://slsa.dev/verification_summary/v1" // SLSA verification summary
)

// RoleFor returns the role that may issue a predicate type. An unknown type has no role, so
// evidence of that type never counts.
func RoleFor(predicateType string) (Role, bool) {
	switch predicateType {
	case PredicateSign, PredicateProvenance:
		return RoleBuilder, true
	case PredicateTestResult, PredicateParity, PredicatePerformance:
		return RoleVerifier, true
	case PredicateApproval, PredicateQuarantine:
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
func NewDigestSet(d Digest) DigestSet {
	if d == "" {
		return nil
	}
	return DigestSet{string(d.Algorithm()): d.Encoded()}
}

// SHA256 returns the SHA-256 digest, or "".
func (s DigestSet) SHA256() Digest {
	if hex := s[string(digest.SHA256)]; hex != "" {
		return digest.NewDigestFromEncoded(digest.SHA256, hex)
	}
	return ""
}

// Names reports whether the set contains d.
func (s DigestSet) Names(d Digest) bool {
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
	body, err := CanonicalJSON(predicate)
	if err != nil {
		return nil, err
	}
	return CanonicalJSON(Statement{Type: StatementType, Subject: subjects, PredicateType: predicateType, Predicate: body})
}

// About reports whether the statement has d among its subjects.
func (s Statement) About(d Digest) bool {
	for _, subject := range s.Subject {
		if subject.Digest.Names(d) {
			return true
		}
	}
	return false
}

// Bundle is one piece of evidence as it is stored: a sigstore bundle.
type Bundle struct {
	Digest        Digest // of the referrer manifest that holds it; empty before it is stored
	Document      Digest // of Data; empty before it is stored
	PredicateType string // as the manifest's annotation claims, if it has one; not verified
	Data          []byte // the bundle document
}

// Claim is a bundle whose signature verified, with the roles of its signer.
type Claim struct {
	Bundle    Digest // of the referrer manifest
	Subject   Digest // the manifest that it is attached to
	Statement Statement
	Signer    string // key identifier
	Roles     []Role // the signer's roles for the resource; may be empty
	// Key is the state of the signer's key. The code that verifies the signature sets it.
	Key KeyState
	// RetiredAt is when the key was retired; set if Key is KeyRetired.
	RetiredAt time.Time
	// Recorded is the number of the first event in the history that names the bundle, or 0. It
	// orders evidence. A signer can claim any time, but cannot change when the catalog first
	// recorded the bundle.
	Recorded int64
	// WithoutHistory is true if there is no history, as in a pulled folder. Only then the time
	// that the signer claims is used. If there is a history, the time of a claim that it does not
	// name is unknown.
	WithoutHistory bool
	// RecordedAt is the time of that event, by the clock of the process that recorded it. If
	// Recorded is 0, it is the time at which the bundle was read, or zero.
	RecordedAt time.Time
	// Observed is the number of the event that a report's History names, or 0 if the catalog
	// has no such event.
	Observed int64
}

// SignedAs reports whether the signer has the role for the resource. It says nothing about the
// state of the key: a retired or revoked key keeps its roles. [Accept] says whether a claim about
// a release counts.
func (c Claim) SignedAs(role Role) bool { return role != "" && slices.Contains(c.Roles, role) }

// SignedNowAs reports whether the signer has the role, with a key that is trusted now. It is for
// claims about which nothing says when they were made.
func (c Claim) SignedNowAs(role Role) bool { return c.Key == KeyTrusted && c.SignedAs(role) }

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
	Bundle  Digest `json:"bundle"`
	Subject Digest `json:"subject"`
	Reason  string `json:"reason"`
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
	Code    string `json:"code"` // "limit_exceeded", "accuracy_drop", "new_nan", "shape", "too_few_cases", "not_run", "jitter", "batch", "dimension"
	Output  string `json:"output,omitempty"`
	Figure  string `json:"figure,omitempty"` // "cosine", "maxAbs", ...
	Limit   Figure `json:"limit,omitempty"`
	Value   Figure `json:"value,omitempty"`
	Case    int    `json:"case"`
	Message string `json:"message"`
}

// ReportHead has the fields that all reports of a verifier share: how the report was made.
type ReportHead struct {
	Verdict    Verdict   `json:"verdict"`
	Reasons    []Reason  `json:"reasons,omitempty"`
	StartedOn  time.Time `json:"startedOn"`
	FinishedOn time.Time `json:"finishedOn"`
	// History is the hash of the newest event that the verifier could see when it began. It is
	// empty for an empty history and in older reports. A pass heals only failures that the history
	// had recorded by then.
	History   DigestSet    `json:"history,omitempty"`
	Limits    DigestSet    `json:"limits"`    // of the limits manifest
	Sources   DigestSet    `json:"sources"`   // of the sources index
	Reference DigestSet    `json:"reference"` // of the reference manifest
	Node      Node         `json:"node"`
	Runtime   RuntimeUsed  `json:"runtime"`
	Settings  RunSettings  `json:"settings"`
	Tool      ToolIdentity `json:"tool"`
}

// RuntimeUsed is the library that ran the engine.
type RuntimeUsed struct {
	Name    string    `json:"name"`
	Version string    `json:"version"`
	Library DigestSet `json:"library"` // of the shared library's file
}

// RunSettings are the numeric conditions of a run.
type RunSettings struct {
	Threads   int    `json:"threads"`   // within one operator; 0: as many as the runtime takes by itself
	Level     string `json:"level"`     // graph optimization at load: "disable_all"; "": the runtime's own
	Denormals string `json:"denormals"` // "keep" or "flush"
	// Load is how the engine was loaded: [LoadDefault], or [LoadByProfile] with Profile. It is
	// empty in reports of earlier versions, which loaded with Threads and Level.
	Load    string       `json:"load,omitempty"`
	Profile *LoadProfile `json:"profile,omitempty"`
}

// SettingsOf returns the conditions of a run that loaded an engine by its profile; nil is the
// runtime's own defaults.
func SettingsOf(load *LoadProfile) RunSettings {
	if load == nil {
		return RunSettings{Denormals: "keep", Load: LoadDefault}
	}
	settings := RunSettings{Denormals: "keep", Load: LoadByProfile, Profile: load}
	settings.Level = cmp.Or(load.Options["graph_optimization_level"], load.Options["graphOptimizationLevel"])
	for _, name := range []string{"intra_op_num_threads", "INFERENCE_NUM_THREADS", "num_threads", "numThreads"} {
		if threads, err := strconv.Atoi(load.Options[name]); err == nil {
			settings.Threads = threads
		}
	}
	if load.Options["session.set_denormal_as_zero"] == "1" {
		settings.Denormals = "flush"
	}
	return settings
}

// ToolIdentity is this program.
type ToolIdentity struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ParityReport is the predicate https://mlpromote.dev/parity/v1. It compares what an engine
// computed on the cases of its release with the reference. Its subject is the engine.
type ParityReport struct {
	ReportHead
	Cases    CasesRun                 `json:"cases"`
	Outputs  map[string]OutputFigures `json:"outputs"`
	Accuracy *Accuracy                `json:"accuracy,omitempty"`
	// Slices are the accuracy on slices of the cases, if the limits ask for them.
	Slices []SliceAccuracy `json:"slices,omitempty"`
	// Current compares the accuracy with that of the engine that the next environment had when
	// the report was made, on the same cases; absent if the limits do not ask or there was none.
	Current *CurrentAccuracy `json:"current,omitempty"`
	// Rules is the version of the limits, and so of the rules of the verdict; absent for 1. Since
	// version 2, Checks are all limits, judged at Confidence: that of the limits, with the
	// part that may be wrong divided by Attempts. Attempts is 1 more than the number of earlier
	// reports in which the engine failed a limit on a rate, with these limits and cases.
	Rules      int     `json:"rules,omitempty"`
	Confidence Figure  `json:"confidence,omitempty"`
	Attempts   int     `json:"attempts,omitempty"`
	Checks     []Check `json:"checks,omitempty"`
	// Providers says which execution providers ran the engine's nodes, if the engine declares any.
	Providers []ProviderShare `json:"providers,omitempty"`
	// PlainLoad says what came of loading the engine without its load profile, if it has one.
	PlainLoad *PlainLoad `json:"plainLoad,omitempty"`
	// Consistency is what the engine did beyond the cases, since version 2 of limits.
	Consistency []ConsistencyCheck `json:"consistency,omitempty"`
	// EarlyStop is reserved for a verification that ends before all cases ran, by an e-process: a
	// test that stays valid whenever it is looked at. Nothing writes it yet, and a pass that has
	// it does not count.
	EarlyStop json.RawMessage `json:"earlyStop,omitempty"`
}

// PlainLoad is a run of an engine that has a load profile, with the runtime's own defaults in
// its place and in a process of its own.
type PlainLoad struct {
	Cases   int     `json:"cases"` // that were run, or tried: the first of the set
	Verdict Verdict `json:"verdict"`
	Message string  `json:"message,omitempty"` // why it did not pass
}

// ProviderShare is the share of one ONNX Runtime execution provider in one run of an engine.
type ProviderShare struct {
	// Options are those that the engine requests of the provider. It was run with them.
	Options map[string]string `json:"options,omitempty"`
	Name    string            `json:"name"`   // "CPUExecutionProvider"
	Nodes   int               `json:"nodes"`  // graph nodes as the runtime partitioned them; a fused part is one
	TimeNS  int64             `json:"timeNs"` // spent in them, nanoseconds
}

// CasesRun says which cases a report is about.
type CasesRun struct {
	Digest DigestSet `json:"digest"` // of the cases manifest
	Golden DigestSet `json:"golden"` // of the golden manifest
	Count  int       `json:"count"`
	Ran    int       `json:"ran"`
	// Earlier is how many of the cases were run by an earlier, interrupted verification on the
	// same kind of machine, at most three days before.
	Earlier  int    `json:"earlier,omitempty"`
	Origin   string `json:"origin"`
	Labelled bool   `json:"labelled"`
}

// OutputFigures compares one output of an engine with the reference over all cases.
// Formulae: package validators/tensor.
type OutputFigures struct {
	DType     string  `json:"dtype"`
	Kind      string  `json:"kind,omitempty"` // what the values mean, since version 2 of limits
	MaxAbs    Figure  `json:"maxAbs"`
	MeanAbs   Figure  `json:"meanAbs"`
	MaxRel    Figure  `json:"maxRel"`
	CosineMin Figure  `json:"cosineMin"`
	SNRdB     Figure  `json:"snrDb"`
	Top1      *Figure `json:"top1,omitempty"` // fraction of rows with the same argmax; absent if the output has no rows
	// Spread is the standard deviation of the reference's values; the figures below are relative
	// to it. They are 0 in reports that were made before there were any.
	Spread      Figure `json:"spread,omitempty"`
	SpreadSNRdB Figure `json:"spreadSnrDb,omitempty"`
	MaxError    Figure `json:"maxError,omitempty"`
	CaseError   Figure `json:"caseError,omitempty"`
	Systematic  Figure `json:"systematic,omitempty"`
	// CaseErrors counts the cases by their root mean square error relative to the spread, in
	// decades: below 1e-8, from there to below 1e-7, and so on; the tenth is 1 and above.
	CaseErrors []int `json:"caseErrors,omitempty"`

	NewNaN int    `json:"newNaN"`
	NewInf int    `json:"newInf"`
	Worst  *Worst `json:"worst,omitempty"`
}

// Worst is the element that differs most.
type Worst struct {
	Case      int     `json:"case"`
	Index     []int64 `json:"index"`
	Reference Figure  `json:"reference"`
	Engine    Figure  `json:"engine"`
}

// Accuracy is a metric against labels, of the reference and of the engine.
type Accuracy struct {
	Metric    string `json:"metric"` // "top1", "f1_macro", "rmse", ...
	Reference Figure `json:"reference"`
	Engine    Figure `json:"engine"`
	// Drop is reference - engine; for an error, of which less is better (mae, rmse, perplexity), it
	// is the part of the reference's by which the engine's is larger.
	Drop Figure `json:"drop"`
	// Lost and Won count the answers that only the reference has right, and only the engine. A
	// case with several answers counts by their shares.
	Lost  Figure `json:"lost,omitempty"`
	Won   Figure `json:"won,omitempty"`
	Right Figure `json:"right,omitempty"` // answers that the engine has right, likewise
	Cases int    `json:"cases,omitempty"` // with answers
	Count int    `json:"count"`           // answers
	// Seed is that of the bootstrap, for a metric that is no share of cases. Such metrics have no
	// counts.
	Seed uint64 `json:"seed,omitempty"`
}

// SliceAccuracy is the accuracy on the cases that have one value in a column.
type SliceAccuracy struct {
	By       string   `json:"by"`    // the tensor of the cases that says the slice of each
	Value    string   `json:"value"` // in decimal
	Accuracy Accuracy `json:"accuracy"`
	// Low and High are the one-sided bounds of the engine's figure, at the confidence of the report.
	Low  Figure `json:"low"`
	High Figure `json:"high"`
}

// CurrentAccuracy is the accuracy of an engine beside that of the one that it would replace.
type CurrentAccuracy struct {
	Environment string    `json:"environment"`
	Release     DigestSet `json:"release"`
	Engine      DigestSet `json:"engine"`
	// Accuracy has as reference the engine that would be replaced.
	Accuracy Accuracy `json:"accuracy"`
}

// PerformanceReport is the predicate https://mlpromote.dev/performance/v1: the duration of
// single runs of the engine on the node. Its subject is the engine.
type PerformanceReport struct {
	ReportHead
	Latency
	Warmup           int      `json:"warmup"`                     // runs before the first sample
	ReferenceLatency *Latency `json:"referenceLatency,omitempty"` // of the reference, interleaved in the same process
	// CurrentLatency is that of the engine of this label that the next environment had, measured in
	// the same turns; absent where it had none.
	CurrentLatency *Latency `json:"currentLatency,omitempty"`
	// Apart is true if engines and reference ran in separate processes, in turns, because they
	// were too large to be in memory together.
	Apart bool `json:"apart,omitempty"`
	// Ratio compares with the engine that would be replaced; absent if the limits do not ask or
	// there was none.
	Ratio *LatencyRatio `json:"ratio,omitempty"`
	// BudgetNs is what the timed runs of an engine were to take at most, and TookNs what measuring
	// the latency of all engines took, comparisons included; 0 in older reports.
	BudgetNs int64    `json:"budgetNs,omitempty"`
	TookNs   int64    `json:"tookNs,omitempty"`
	Fitness  *Fitness `json:"fitness,omitempty"` // of the machine; absent in older reports
}

// Latency summarizes samples of single runs. Quantiles are nearest-rank.
type Latency struct {
	Batch     int64   `json:"batch"`
	P50Ns     int64   `json:"p50Ns"`
	P90Ns     int64   `json:"p90Ns"`
	P99Ns     int64   `json:"p99Ns"`
	PerSecond float64 `json:"perSecond"` // cases per second: batch over mean time
	Samples   int     `json:"samples"`
	// Bounds are there if the limits have version 2 or later.
	Bounds *LatencyBounds `json:"bounds,omitempty"`
}

// Figure is a measured number. JSON cannot express infinities and NaN, so those are the strings
// "inf", "-inf" and "nan".
type Figure float64

// MarshalJSON writes a number or one of the three strings.
func (f Figure) MarshalJSON() ([]byte, error) {
	switch v := float64(f); {
	case math.IsNaN(v):
		return []byte(`"nan"`), nil
	case math.IsInf(v, 1):
		return []byte(`"inf"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-inf"`), nil
	default:
		return json.Marshal(v)
	}
}

// UnmarshalJSON reads what MarshalJSON writes.
func (f *Figure) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"nan"`:
		*f = Figure(math.NaN())
	case `"inf"`:
		*f = Figure(math.Inf(1))
	case `"-inf"`:
		*f = Figure(math.Inf(-1))
	default:
		v, err := strconv.ParseFloat(string(data), 64)
		if err != nil {
			return fmt.Errorf("figure %s: want a number, \"inf\", \"-inf\" or \"nan\"", data)
		}
		*f = Figure(v)
	}
	return nil
}
