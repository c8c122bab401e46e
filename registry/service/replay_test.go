package service_test

import (
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// Other environments say of every head whether nodes would still get it, and whether it
// would be promoted again, and change nothing.
func TestReplay(t *testing.T) {
	t.Parallel()
	type wanted struct {
		refused  bool
		admitted bool
		lost     int
		says     string // in a reason
	}
	for name, c := range map[string]struct {
		edit func(c *backend.Backend)
		want wanted
	}{
		"the same":           {func(*backend.Backend) {}, wanted{admitted: true}},
		"asks for more":      {require(policy.RequireReproducibleBytes), wanted{says: "would not be promoted: reproducible-bytes of "}},
		"a retired builder":  {keyState(evidence.RoleBuilder, evidence.KeyRetired), wanted{says: "would not be promoted: signature of "}},
		"a revoked verifier": {keyState(evidence.RoleVerifier, evidence.KeyRevoked), wanted{says: "would not be promoted: parity of "}},
		"a revoked builder":  {keyState(evidence.RoleBuilder, evidence.KeyRevoked), wanted{refused: true, lost: 3, says: "would not be given to nodes: signature of "}},
		"a revoked promoter": {keyState(evidence.RolePromoter, evidence.KeyRevoked), wanted{refused: true, admitted: true, lost: 3, says: "would not be given to nodes: summary of release"}},
		"another registry": {func(c *backend.Backend) { c.Environments.Registry = "other" },
			wanted{refused: true, lost: 3,
				says: "would not be given to nodes: summary of release: no verification summary of a trusted promoter for oci://other/prod/" +
					registrytest.Model}},
		"no such environment": {func(c *backend.Backend) { c.Environments.List = c.Environments.List[:1] },
			wanted{refused: true, lost: 3, says: `would not be given to nodes: environment of release: no environment "prod"`}},
		"prod is not protected": {func(c *backend.Backend) {
			c.Environments.List[1] = policy.Environment{Name: "prod"}
		}, wanted{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			r := w.Promoted(t, registrytest.Build{})
			before, err := w.History(t.Context(), history.HistoryQuery{})
			if err != nil {
				t.Fatal(err)
			}
			all, err := w.after(t, c.edit).Replay(t.Context(), w.service)
			if err != nil {
				t.Fatal(err)
			}
			if len(all) != 1 || all[0].Head.Environment != "prod" || all[0].Head.Release != r.Digest {
				t.Fatalf("replayed %+v, want the head of prod alone", all)
			}
			got := all[0]
			if got.Refused() != c.want.refused || got.Admission.Allowed() != c.want.admitted || len(got.Lost) != c.want.lost {
				t.Errorf("refused %t, admitted %t, lost %v, want %+v\n%s", got.Refused(),
					got.Admission.Allowed(), got.Lost, c.want, strings.Join(got.Reasons(), "\n"))
			}
			if c.want.says != "" && !slices.ContainsFunc(got.Reasons(), func(line string) bool { return strings.HasPrefix(line, c.want.says) }) {
				t.Errorf("the reasons are\n%s\nwant one %q", strings.Join(got.Reasons(), "\n"), c.want.says)
			}
			if after, err := w.History(t.Context(), history.HistoryQuery{}); err != nil || len(after) != len(before) {
				t.Errorf("the history has %d events (%v), want the %d of before", len(after), err, len(before))
			}
		})
	}
}
