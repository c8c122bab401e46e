package pipeline

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// Limits of version 1 ask for no check beyond the cases, but golden outputs of another model fail with them, too.
func TestGoldenOutputsWithLimitsOfVersion1(t *testing.T) {
	t.Parallel()
	for golden, want := range map[registry.Verdict]registry.Verdict{
		registry.VerdictPass:      registry.VerdictPass,
		registry.VerdictFail:      registry.VerdictFail,
		registry.VerdictUndecided: registry.VerdictUndecided,
		"":                        registry.VerdictPass, // there was no check
	} {
		checks := consistencyChecks{v: verification{p: &Pipeline{}}}
		if golden != "" {
			checks.golden = registry.ConsistencyCheck{Kind: registry.ConsistencyGolden, Verdict: golden, Message: "why"}
		}
		report := registry.ParityReport{ReportHead: registry.ReportHead{Verdict: registry.VerdictPass}, Cases: registry.CasesRun{Ran: 7}}
		if err := checks.run(t.Context(), candidate{}, nil, nil, &report); err != nil {
			t.Fatal(err)
		}
		if report.Verdict != want || len(report.Reasons) > 0 != (want != registry.VerdictPass) || len(report.Consistency) > 0 != (golden != "") {
			t.Errorf("golden %q: verdict %s, reasons %v, checks %v; want %s", golden, report.Verdict, report.Reasons, report.Consistency, want)
		}
	}
}
