package environments_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry/environments"
)

// withFreeze is a file whose prod has freezes, in line 5 from column 34.
func withFreeze(freeze string) string {
	return "version: 1\nregistry: local\nenvironments:\n  staging:\n  prod: {from: staging, freeze: " + freeze + "}\n" + trustYAML
}

func TestFreeze(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	const v1, weekend = "version: 1\n", "{name: weekend, from: Fri 18:00, until: Mon 06:00, zone: Europe/Berlin}"
	for name, c := range map[string]struct {
		text, want string
		shape      bool // whether the schema accepts it
	}{
		"every week, and once": {withFreeze("[" + weekend + ", {name: fair, from: 2026-11-27T00:00:00+01:00, until: 2026-11-30T08:00:00Z}]"), "", true},
		"no list": {withFreeze(weekend),
			"5:33 freeze is a mapping: want a list of windows, such as [{name: weekend, from: Fri 18:00, until: Mon 06:00, zone: Europe/Berlin}]", false},
		"an empty list": {withFreeze("[]"),
			"5:33 freeze is a list: want a list of windows, such as [{name: weekend, from: Fri 18:00, until: Mon 06:00, zone: Europe/Berlin}]", false},
		"without an end": {withFreeze("[{name: x, from: Fri 18:00, zone: UTC}]"), `5:34 key "until" is missing`, false},
		"without a name": {withFreeze("[{from: Fri 18:00, until: Mon 06:00, zone: UTC}]"), `5:34 key "name" is missing`, false},
		"a misspelled key": {withFreeze("[{name: x, from: Fri 18:00, until: Mon 06:00, timezone: UTC}]"),
			`5:34 freeze x: "Fri 18:00": want an instant such as 2026-12-24T18:00:00+01:00, or with zone a time of a week such as Fri 18:00` +
				"\n" + `5:79 unknown key "timezone": want name, from, until, zone`, false},
		"twice": {withFreeze("[" + weekend + ", " + weekend + "]"), "5:3 environment prod: freeze weekend is defined twice", true},
		"a week without a zone": {withFreeze("[{name: x, from: Fri 18:00, until: Mon 06:00}]"),
			`5:34 freeze x: "Fri 18:00": want an instant such as 2026-12-24T18:00:00+01:00, or with zone a time of a week such as Fri 18:00`, false},
		"an instant with a zone": {withFreeze("[{name: x, from: 2026-11-27T00:00:00Z, until: Mon 06:00, zone: UTC}]"),
			`5:34 freeze x: with zone it is weekly: "2026-11-27T00:00:00Z" is no time of a week: want a day and a time, such as Fri 18:00`, false},
		"a date alone": {withFreeze("[{name: x, from: 2026-11-27, until: 2026-11-30}]"),
			`5:34 freeze x: "2026-11-27": want an instant such as 2026-12-24T18:00:00+01:00, or with zone a time of a week such as Fri 18:00`, false},
		"backwards": {withFreeze("[{name: x, from: 2026-11-27T00:00:00Z, until: 2026-11-26T00:00:00Z}]"),
			"5:34 freeze x: until 2026-11-26T00:00:00Z is not after from 2026-11-27T00:00:00Z: want a later instant", true},
		"no extent": {withFreeze("[{name: x, from: Fri 18:00, until: Fri 18:00, zone: UTC}]"),
			"5:34 freeze x: from and until are both Fri 18:00: want two times of a week", true},
		"an unknown zone": {withFreeze("[{name: x, from: Fri 18:00, until: Mon 06:00, zone: Berlin}]"),
			`5:34 freeze x: time zone "Berlin" is not known: want a name such as Europe/Berlin or UTC`, true},
		"where builds go": {v1 + "registry: local\nenvironments:\n  staging: {freeze: [" + weekend + "]}\n" + trustYAML,
			"4:3 environment staging: freeze has no effect without from, since builds write it directly", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			es, err := environments.Parse("environments.yaml", []byte(c.text))
			got := ""
			if err != nil {
				got = problems(t, err)
			} else if len(es.List[1].Policy().Freeze) != 2 {
				t.Errorf("the policy has the windows %v, want two", es.List[1].Policy().Freeze)
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
