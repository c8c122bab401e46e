package export

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// measured is a release with one engine, a report about it, and a quarantine.
func measured(value evidence.Figure) inspection.Result {
	low, high := evidence.Figure(0.9), evidence.Figure(1)
	e := artifact.Engine{
		Digest: digest.FromString("engine"), Target: artifact.Target{Name: "linux-amd64-v1"}, Variant: "int8", Precision: "int8",
		Toolchain: artifact.Toolchain{Name: "onnxruntime", Version: "1.30.0"}, Reference: digest.FromString("reference"),
		Operators: []artifact.Operators{{Path: "operators.so", Digest: digest.FromString("operators")}},
	}
	report := &evidence.ParityReport{
		ReportHead: evidence.ReportHead{Verdict: evidence.VerdictPass, FinishedOn: at},
		Cases:      evidence.CasesRun{Digest: evidence.NewDigestSet(digest.FromString("cases"))},
		Checks:     evidence.Checks{{Trial: evidence.TrialCases, Output: "logits", Figure: "top1", Value: value, Low: &low, High: &high}, {Trial: evidence.TrialCases, Figure: "maxError", Value: value}},
		Slices:     []evidence.SliceAccuracy{{By: "group", Value: "3", Accuracy: evidence.Accuracy{Metric: "top1", Engine: value}, Low: low, High: high}},
	}
	return inspection.Result{
		Release:     artifact.Release{Digest: digest.FromString("release"), Model: "vision/digits", Version: "1.0.0", Engines: []artifact.Engine{e}},
		Engines:     []inspection.Engine{{Label: e.Label(), Digest: e.Digest, Parity: report}},
		Quarantines: []inspection.Quarantine{{Label: "release", Reason: "wrong labels"}},
	}
}

// The document has what was measured with its bounds, says from what an engine was made, and depends on nothing else than
// the release and its evidence.
func TestBOM(t *testing.T) {
	t.Parallel()
	write := func(value evidence.Figure) (cdxBOM, []byte) {
		data, err := BOM(measured(value), "oci://local/prod/vision/digits")
		if err != nil {
			t.Fatal(err)
		}
		var b cdxBOM
		if err := json.Unmarshal(data, &b); err != nil {
			t.Fatal(err)
		}
		return b, data
	}
	b, data := write(0.95)
	if _, again := write(0.95); !bytes.Equal(data, again) {
		t.Error("the same release gave another document")
	}
	if other, _ := write(0.96); other.SerialNumber == b.SerialNumber {
		t.Errorf("another figure has the serial number %s too", b.SerialNumber)
	}
	if want := at.UTC().Format(time.RFC3339); b.Metadata.Timestamp != want {
		t.Errorf("timestamp %q, want that of the newest report, %q", b.Metadata.Timestamp, want)
	}
	refs := map[string]cdxComponent{releaseRef: b.Metadata.Component}
	for _, c := range b.Components {
		if _, twice := refs[c.Ref]; twice || c.Ref == "" {
			t.Errorf("bom-ref %q twice or empty", c.Ref)
		}
		refs[c.Ref] = c
	}
	for _, d := range b.Dependencies {
		for _, on := range append(d.On, d.Ref) {
			if _, ok := refs[on]; !ok {
				t.Errorf("a dependency names %s, which is no component", on)
			}
		}
	}
	engine := refs["engine:"+string(digest.FromString("engine"))]
	if p := engine.Pedigree; p == nil || len(p.Ancestors) != 1 || p.Ancestors[0].Pedigree == nil ||
		p.Ancestors[0].Pedigree.Ancestors[0].Hashes[0].Content != digest.FromString("reference").Encoded() {
		t.Errorf("pedigree %+v, want the variant, made of the reference model", p)
	}
	metrics := engine.Card.Analysis.Metrics
	if len(metrics) != 3 || metrics[0].Interval == nil || *metrics[0].Interval != (cdxInterval{"0.9", "1"}) ||
		metrics[1].Interval != nil || metrics[2].Slice != "group=3" {
		t.Errorf("metrics %+v, want top1 with bounds, maxError without, and a slice", metrics)
	}
	if p := b.Metadata.Component.Properties; p[len(p)-1].Value != "release: wrong labels" {
		t.Errorf("properties %v, want the quarantine last", p)
	}
}

// Digests that are none give no hash, whoever signed them.
func TestHashes(t *testing.T) {
	t.Parallel()
	for _, d := range []registry.Digest{"", "sha256", "sha256:zz", digest.SHA512.FromString("a")} {
		if got := hashes(d); got != nil {
			t.Errorf("hashes of %q: %v, want none", d, got)
		}
	}
}

// Too few samples prove no upper bound: it is not 0.
func TestLatencyMetrics(t *testing.T) {
	t.Parallel()
	report := &evidence.PerformanceReport{Latency: evidence.Latency{Batch: 1, P50Ns: 10,
		P99Ns: 20, Bounds: &evidence.LatencyBounds{P50LowNs: 9, P50HighNs: 11, P99LowNs: 15}}}
	metrics := latencyMetrics(report)
	if got := *metrics[0].Interval; got != (cdxInterval{"9", "11"}) {
		t.Errorf("bounds of the median %v, want 9 and 11", got)
	}
	if got := *metrics[2].Interval; got != (cdxInterval{"15", "inf"}) {
		t.Errorf("bounds of the 99th percentile %v, want 15 and inf", got)
	}
}
