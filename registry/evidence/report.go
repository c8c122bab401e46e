package evidence

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/figure"
)

// LatencyBounds are one-sided bounds of quantiles of latency at a confidence, by order statistics:
// samples, in nanoseconds. An upper bound of 0 means that the samples are too few for one.
type LatencyBounds struct {
	Confidence Figure `json:"confidence"`
	P50LowNs   int64  `json:"p50LowNs"`
	P50HighNs  int64  `json:"p50HighNs"`
	P99LowNs   int64  `json:"p99LowNs"`
	P99HighNs  int64  `json:"p99HighNs"`
	// Over is how many samples are above the limit on the 99th percentile; absent without one.
	Over *int `json:"over,omitempty"`
}

// Fitness is what a machine did while latency was measured.
type Fitness struct {
	// Steal is the share of the time that processors wanted to work in which the machine below ran
	// other virtual machines; absent where the system does not count it.
	Steal *Figure `json:"steal,omitempty"`
	// MHzBefore and MHzAfter are the mean frequency of the processors; 0 where it is not known.
	MHzBefore int `json:"mhzBefore,omitempty"`
	MHzAfter  int `json:"mhzAfter,omitempty"`
	// Emulated says why the times are not those of the target; empty if they are. No limit on them
	// is decided then.
	Emulated string `json:"emulated,omitempty"`
}

// LatencyRatio compares the median latency of an engine with that of the engine that it would
// replace. Each ran in Blocks processes, in an order that is a palindrome, so that a drift of the machine
// meets both alike.
type LatencyRatio struct {
	Environment string    `json:"environment"`
	Release     DigestSet `json:"release"`
	Engine      DigestSet `json:"engine"`
	Blocks      int       `json:"blocks"`
	CurrentNs   int64     `json:"currentP50Ns"` // of the engine that would be replaced
	Ratio       Figure    `json:"ratio"`        // of medians; 1.1 is 10 % slower
	// Low and High are one-sided bounds of the ratio at Confidence, by a hierarchical bootstrap
	// over blocks and samples with Seed. SameLow and SameHigh are those of the engine against
	// itself: what the machine alone changes.
	Low        Figure `json:"low"`
	High       Figure `json:"high"`
	SameLow    Figure `json:"sameLow"`
	SameHigh   Figure `json:"sameHigh"`
	Confidence Figure `json:"confidence"`
	Seed       int    `json:"seed"`
}

// ReportHead has the fields that all reports of a verifier share: how the report was made.
type ReportHead struct {
	Verdict    Verdict   `json:"verdict"`
	Reasons    []Reason  `json:"reasons,omitempty"`
	StartedOn  time.Time `json:"startedOn"`
	FinishedOn time.Time `json:"finishedOn"`
	// History is the hash of the newest event that the verifier could see when it began. It is
	// empty for an empty history. A pass heals only failures that the history
	// had recorded by then.
	History   DigestSet     `json:"history,omitempty"`
	Limits    DigestSet     `json:"limits"`    // of the limits manifest
	Sources   DigestSet     `json:"sources"`   // of the sources index
	Reference DigestSet     `json:"reference"` // of the reference manifest
	Node      artifact.Node `json:"node"`
	Runtime   RuntimeUsed   `json:"runtime"`
	Settings  RunSettings   `json:"settings"`
	Tool      ToolIdentity  `json:"tool"`
}

// RuntimeUsed is the library that ran the engine.
type RuntimeUsed struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Library is the digest of the shared library's file; for a runtime that is not one, of the lock file of its install, its
	// container image, or the packages of its Python.
	Library DigestSet `json:"library"`
	// Runner is the digest of the files of a user's own program that ran the engine, and of its Python; Library is then the digest of the name and
	// version of the runtime, and of the packages.
	Runner DigestSet `json:"runner,omitempty"`
	// Served is set if a model server ran the engine. Name and Version are then the server's.
	Served *Served `json:"served,omitempty"`
	// Host is set for a Python that was there before: of its packages no lock file of mlpromote says which they are.
	Host *HostPackages `json:"host,omitempty"`
}

// InPlaceOf returns the name of the model server that ran an engine in place of its own runtime; empty for none. A toolchain of a user's can
// have a server as its runtime: the report has the toolchain's name then.
func (r RuntimeUsed) InPlaceOf(e artifact.Engine) string {
	if r.Served == nil || r.Name == e.Toolchain.Name {
		return ""
	}
	return r.Served.By
}

// isServer reports whether a model server ran an engine in place of its own runtime.
func (r RuntimeUsed) isServer() bool { return r.Served != nil && r.Name == r.Served.By }

// Served is a model server through which an engine was run.
type Served struct {
	By       string `json:"by"`               // name of its manifest: "triton"
	Server   string `json:"server,omitempty"` // how it calls itself
	Version  string `json:"version"`
	Protocol string `json:"protocol"` // "oip-rest"
	Model    string `json:"model"`    // name under which it has the engine
	// Arguments are those in its manifest, with placeholders such as {folder}.
	Arguments []string `json:"arguments,omitempty"`
	// Configuration is the digest of its manifest, and of the files beside the engine in the folder that it served.
	Configuration DigestSet `json:"configuration"`
	// URL is the address of one that ran already; empty for one that the verifier started.
	URL string `json:"url,omitempty"`
	// BytesSeen is true if it was started on the bytes of the engine, did not answer without them, and left them as they were.
	BytesSeen bool `json:"bytesSeen"`
	// RepeatsIDs is true if answers have the id of their request, so that no earlier answer was repeated unnoticed.
	RepeatsIDs bool `json:"repeatsIds"`
}

// HostPackages are the packages of a Python that mlpromote did not install.
type HostPackages struct {
	Packages DigestSet         `json:"packages"` // of the interpreter's version, and of the lists of files of all packages
	Versions map[string]string `json:"versions"` // of every package, by its normalized name
}

// RunSettings are the numeric conditions of a run.
type RunSettings struct {
	Threads   int    `json:"threads"`   // within one operator; 0: as many as the runtime takes by itself
	Level     string `json:"level"`     // graph optimization at load: "disable_all"; "": the runtime's own
	Denormals string `json:"denormals"` // "keep" or "flush"
	// Load is how the engine was loaded: [artifact.LoadDefault], or [artifact.LoadByProfile] with Profile.
	Load    string                `json:"load,omitempty"`
	Profile *artifact.LoadProfile `json:"profile,omitempty"`
}

// SettingsOf returns the conditions of a run that loaded an engine by its profile; nil is the
// runtime's own defaults.
func SettingsOf(load *artifact.LoadProfile) RunSettings {
	if load == nil {
		return RunSettings{Denormals: "keep", Load: artifact.LoadDefault}
	}
	settings := RunSettings{Denormals: "keep", Load: artifact.LoadByProfile, Profile: load}
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

// ReportRules is the version of the rules by which limits judge engines, which parity reports name.
const ReportRules = 1

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
	// Destination is what the limits on a regression were held against; absent if there are none.
	// The report counts only for a promotion that replaces this release.
	Destination *Destination `json:"destination,omitempty"`
	// Rules is [ReportRules]. Checks are all limits,
	// judged at Confidence: that of the limits, with the part that may be wrong divided by Attempts; then the trials beyond the
	// cases. Attempts is 1 more than the number of earlier
	// reports in which the engine failed a limit on a rate, with these limits and cases.
	Rules      int    `json:"rules"`
	Confidence Figure `json:"confidence,omitempty"`
	Attempts   int    `json:"attempts,omitempty"`
	Checks     Checks `json:"checks,omitempty"`
	// CaseFigures names the file of what was measured of each case, from which counts and bounds
	// follow; absent for an engine that did not run.
	CaseFigures *CaseFigures `json:"caseFigures,omitempty"`
	// Providers says which execution providers ran the engine's nodes, if the engine declares any.
	Providers []ProviderShare `json:"providers,omitempty"`
	// EarlyStop is reserved for a verification that ends before all cases ran, by an e-process: a
	// test that stays valid whenever it is looked at. Nothing writes it yet, and a pass that has
	// it does not count.
	EarlyStop json.RawMessage `json:"earlyStop,omitempty"`
}

// MaxCaseFigures is the size in bytes of the largest file of per-case figures.
const MaxCaseFigures = 4 << 20

// CaseFigures name the file of per-case figures that is stored with a report. Format:
// docs/reference/format-evidence.md.
type CaseFigures struct {
	Digest DigestSet `json:"digest,omitempty"` // of the file; absent if all was left out
	Size   int64     `json:"size,omitempty"`   // bytes
	// LeftOut says what is not in the file because it would be larger than [MaxCaseFigures].
	LeftOut string `json:"leftOut,omitempty"`
}

// NameCaseFigures names a file, which is nil if all was left out.
func NameCaseFigures(data []byte, leftOut string) *CaseFigures {
	if len(data) == 0 {
		return &CaseFigures{LeftOut: leftOut}
	}
	return &CaseFigures{Digest: NewDigestSet(digest.FromBytes(data)), Size: int64(len(data)), LeftOut: leftOut}
}

// CheckFile compares a file with the digest and size in the report. Errors: CodeDigest if they differ;
// CodeInvalid if the report names no file.
func (c *CaseFigures) CheckFile(data []byte) error {
	switch {
	case c == nil || len(c.Digest) == 0:
		return registry.Errorf(registry.CodeInvalid, "the report names no file of per-case figures")
	case int64(len(data)) != c.Size:
		return registry.Errorf(registry.CodeDigest, "the per-case figures have %d bytes, and the report names a file of %d", len(data), c.Size)
	case !c.Digest.Names(digest.FromBytes(data)):
		return registry.Errorf(registry.CodeDigest, "the per-case figures are %s, and the report names %s", digest.FromBytes(data), c.Digest.SHA256())
	}
	return nil
}

// CheckFigures checks that a file is the one that the report in a statement names. Errors: CodeInvalid
// if it is no parity report or names no file; CodeDigest if it names another one.
func (s Statement) CheckFigures(data []byte) error {
	var report ParityReport
	if s.PredicateType != PredicateParity {
		return registry.Errorf(registry.CodeInvalid, "a statement of type %.100q has no per-case figures: want %s", s.PredicateType, PredicateParity)
	}
	if err := registry.DecodeSigned(s.Predicate, &report); err != nil {
		return registry.Errorf(registry.CodeInvalid, "parity report: %w", err)
	}
	return report.CaseFigures.CheckFile(data)
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
	Kind      string  `json:"kind,omitempty"` // what the values mean
	Few       bool    `json:"few,omitempty"`  // a case has under 4 values, of which limits ask how many cases are close
	MaxAbs    Figure  `json:"maxAbs"`
	MeanAbs   Figure  `json:"meanAbs"`
	MaxRel    Figure  `json:"maxRel"`
	CosineMin Figure  `json:"cosineMin"`
	SNRdB     Figure  `json:"snrDb"`
	Top1      *Figure `json:"top1,omitempty"` // fraction of rows with the same argmax; absent if the output has no rows
	// Prefix is of tokens: the mean over the cases of the share of rows with the same argmax before the
	// first row with another one (longest common prefix).
	Prefix *Figure `json:"prefix,omitempty"`
	// Spread is the standard deviation of the reference's values; the figures below are relative
	// to it. They are 0 in reports that were made before there were any.
	Spread      Figure `json:"spread,omitempty"`
	SpreadSNRdB Figure `json:"spreadSnrDb,omitempty"`
	MaxError    Figure `json:"maxError,omitempty"`
	CaseError   Figure `json:"caseError,omitempty"`
	Systematic  Figure `json:"systematic,omitempty"`
	// Quarters are the errors by the size of the reference's values; absent unless these are above 0 and span a factor of ten.
	Quarters *Quarters `json:"quarters,omitempty"`
	// Fill is the magnitude from which the reference's values are fill values, which figures leave out; 0 without any.
	Fill Figure `json:"fill,omitempty"`
	// Others are the figures of the channels, which are indices along the last axis, that are left without those furthest from
	// the rest. SpreadSNRdB and MaxError are the worse of these and of those of all; absent where none was left out.
	Others *OtherChannels `json:"others,omitempty"`
	// CaseErrors counts the cases by their root mean square error relative to the spread, in
	// decades: below 1e-8, from there to below 1e-7, and so on; the tenth is 1 and above.
	CaseErrors []int `json:"caseErrors,omitempty"`

	// Classes is the class that the engine loses most clearly. Classes from 0 to 255 are told apart; 256 are all others.
	Classes *ClassCases `json:"classes,omitempty"`

	// Groups are groups of cases by a category, a label or a slice; absent if nobody looked for them.
	Groups *Groups `json:"groups,omitempty"`

	// Identical is of floats: how many cases there are, without copies and those that say nothing, if every case has the bits of the
	// reference model's output; absent if one has not, and if that output is the same in all.
	Identical int `json:"identical,omitempty"`

	NewNaN int    `json:"newNaN"`
	NewInf int    `json:"newInf"`
	Worst  *Worst `json:"worst,omitempty"`
}

// Figure returns a figure by its name in package figure; NaN for one that the output does not have.
func (o OutputFigures) Figure(name string) Figure {
	switch name {
	case figure.Cosine:
		return o.CosineMin
	case figure.SNR:
		return o.SpreadSNRdB
	case figure.MaxAbs:
		return o.MaxAbs
	case figure.MaxError:
		return o.MaxError
	case figure.CaseError:
		return o.CaseError
	case figure.Systematic:
		return o.Systematic
	case figure.QuarterError:
		if o.Quarters != nil {
			return o.Quarters.Worst().Error
		}
	case figure.Groups:
		if o.Groups != nil && o.Groups.Count > 0 {
			return Figure(o.Groups.Lost)
		}
	}
	return Figure(math.NaN())
}

// Quarters are errors in each quarter of the reference's values by their size, the smallest first.
type Quarters struct {
	Channel *int      `json:"channel,omitempty"` // index along the last axis, of the channel with the largest error; absent: all values
	Of      []Quarter `json:"of"`
}

// Quarter is a quarter of the reference's values.
type Quarter struct {
	From     Figure `json:"from"` // of the reference's values
	To       Figure `json:"to"`
	Relative Figure `json:"relative"` // mean of |engine-reference| / reference
	Error    Figure `json:"error"`    // root mean square error / spread of the quarter
}

// Worst returns the quarter with the largest error; one of NaN without any.
func (q Quarters) Worst() Quarter {
	worst := Quarter{Error: Figure(math.NaN())}
	for i, of := range q.Of {
		if math.IsNaN(float64(of.Error)) {
			return of
		}
		if i == 0 || of.Error > worst.Error {
			worst = of
		}
	}
	return worst
}

// Groups are groups of cases with a value in common.
type Groups struct {
	By    []string `json:"by"`    // inputs, columns of inputs, labels and slices that have few values
	Count int      `json:"count"` // groups in which the reference's answers vary
	Lost  int      `json:"lost"`  // of these, groups in which the engine always gives the same answer
}

// ClassCases counts the cases that have a class: in which the reference answers it at any place.
type ClassCases struct {
	Class int `json:"class"`
	Cases int `json:"cases"`
	Lost  int `json:"lost"` // of these, cases in which the engine answers it at fewer than half of these places, or at more others
}

// OtherChannels are figures of some channels of an output, relative to their own spread.
type OtherChannels struct {
	Without  int    `json:"without"` // channels that were left out
	SNRdB    Figure `json:"snrDb"`
	MaxError Figure `json:"maxError"`
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
	// Program is the program of the user that gave each case its score, where the metric is one.
	Program registry.Digest `json:"program,omitempty"`
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

// Destination is the environment that a release goes to next, and the release that it has at one
// time; without a Release it has none.
type Destination struct {
	Environment string    `json:"environment"`
	Release     DigestSet `json:"release,omitempty"`
	// Engine is the one of Release that the engine of the report would replace; absent if it has
	// none for the machine, or this very one.
	Engine DigestSet `json:"engine,omitempty"`
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
	// Apart is true if engines and reference ran in separate processes, in turns, because they
	// were too large to be in memory together.
	Apart bool `json:"apart,omitempty"`
	// Ratio compares with the engine that would be replaced; absent if the limits do not ask or
	// there was none.
	Ratio *LatencyRatio `json:"ratio,omitempty"`
	// BudgetNs is what the timed runs of an engine were to take at most, and TookNs what measuring
	// the latency of all engines took, comparisons included.
	BudgetNs int64    `json:"budgetNs,omitempty"`
	TookNs   int64    `json:"tookNs,omitempty"`
	Fitness  *Fitness `json:"fitness,omitempty"` // of the machine
	// BareLatency is that of the engine on its own runtime in the same verification, for an engine that a model server ran; absent for others.
	BareLatency *Latency `json:"bareLatency,omitempty"`
	// Loads are what several clients of the server measured; empty if no server ran the engine.
	Loads []LoadFigures `json:"loads,omitempty"`
}

// LoadFigures are what clients of a model server measured, who sent all cases. Times are from when a request was due until it was answered.
type LoadFigures struct {
	Clients int `json:"clients"` // requests that were under way at the same time, at most
	// Rate is how many requests began in a second, at even distances; 0: each client sent its next request when the last was answered.
	Rate      float64 `json:"rate,omitempty"`
	Requests  int     `json:"requests"`
	PerSecond float64 `json:"perSecond"` // answers
	P50Ns     int64   `json:"p50Ns"`
	P90Ns     int64   `json:"p90Ns"`
	P99Ns     int64   `json:"p99Ns"`
	P999Ns    int64   `json:"p999Ns"`
	// QueueNs is how long a request waited in the server on average, as the server counts it; 0 if it does not.
	QueueNs int64 `json:"queueNs,omitempty"`
}

// Latency summarizes samples of single runs. Quantiles are nearest-rank.
type Latency struct {
	Batch     int64   `json:"batch"`
	P50Ns     int64   `json:"p50Ns"`
	P90Ns     int64   `json:"p90Ns"`
	P99Ns     int64   `json:"p99Ns"`
	PerSecond float64 `json:"perSecond"` // cases per second: batch over mean time
	Samples   int     `json:"samples"`
	// Bounds are those of the quantiles; absent if no run was timed.
	Bounds *LatencyBounds `json:"bounds,omitempty"`
}
