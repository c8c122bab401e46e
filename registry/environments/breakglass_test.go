package environments_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry/environments"
)

func TestBreakGlass(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	const v1, can = "version: 1\n", "want some of parity, recorded-cases, accuracy, ceilings, no-looser, compatible-interface, " +
		"reproducible-bytes, reproducible-semantic, reports, served, coverage, approvals, no-freeze"
	with := func(version, list string) string {
		return version + "registry: local\nenvironments:\n  staging:\n  prod: {from: staging, break-glass: " + list + "}\n" + trustYAML
	}
	for name, c := range map[string]struct {
		text, want string
		shape      bool // whether the schema accepts it
	}{
		"some":         {with(v1, "[parity, no-freeze]"), "", true},
		"a signature":  {with(v1, "[signature]"), `5:3 environment prod: break-glass: requirement "signature" cannot be skipped: ` + can, false},
		"a quarantine": {with(v1, "[no-quarantine]"), `5:3 environment prod: break-glass: requirement "no-quarantine" cannot be skipped: ` + can, false},
		"twice":        {with(v1, "[parity, parity]"), `5:3 environment prod: break-glass: requirement "parity": listed twice`, false},
		"where builds go": {v1 + "registry: local\nenvironments:\n  staging: {break-glass: [parity]}\n" + trustYAML,
			"4:3 environment staging: break-glass has no effect without from, since builds write it directly", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			es, err := environments.Parse("environments.yaml", []byte(c.text))
			got := ""
			if err != nil {
				got = problems(t, err)
			} else if diff := cmp.Diff([]string{"parity", "no-freeze"}, es.List[1].Policy().BreakGlass); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s\n%s", c.text, diff)
			}
			if err := validate(t, schema, c.text); (err == nil) != c.shape {
				t.Errorf("by the schema: %v, want valid %t", err, c.shape)
			}
		})
	}
}
