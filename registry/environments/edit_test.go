package environments_test

import (
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
)

var added = trust.TrustEntry{Key: "keys/new.pub", Roles: []evidence.Role{evidence.RoleVerifier}, Resources: []string{"oci://local/staging/"}}

const addedText = `{key: keys/new.pub, roles: [verifier], resources: ["oci://local/staging/"]}`

// A file with an approver can ask for approvals, without another change.
func TestAddApprover(t *testing.T) {
	t.Parallel()
	const file = "registry: local\nenvironments: {staging: {}, prod: {from: staging}}\ntrust:\n- {key: a.pub, roles: [builder], resources: [oci://local/]}\n"
	approver := trust.TrustEntry{Key: "b.pub", Roles: []evidence.Role{evidence.RoleApprover}, Resources: []string{"oci://local/"}}
	got, err := environments.AddTrust("environments.yaml", []byte(file), approver)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(got), "{from: staging}", "{from: staging, approvals: 1}", 1)
	if es, err := environments.Parse("environments.yaml", []byte(text)); err != nil || es.List[1].Approvals.Count != 1 {
		t.Errorf("error %v, want a file that takes approvals:\n%s", err, text)
	}
}

// A command changes the lines that it has to change, and no other byte.
func TestAddTrust(t *testing.T) {
	t.Parallel()
	const head = "# what we trust\nregistry: local\nenvironments: {staging: {}} # one\n"
	const one = `{key: a.pub, roles: [builder], resources: ["oci://local/"]}`
	for name, c := range map[string]struct{ before, after string }{
		"a list":          {head + "trust:\n  # first\n  - " + one + " # ours\n# end\n", head + "trust:\n  # first\n  - " + one + " # ours\n  - " + addedText + "\n# end\n"},
		"without indent":  {head + "trust:\n- " + one + "\n", head + "trust:\n- " + one + "\n- " + addedText + "\n"},
		"no last newline": {head + "trust:\n- " + one, head + "trust:\n- " + one + "\n- " + addedText},
		"in brackets":     {head + "trust: [" + one + "]\n", head + "trust: [" + one + ", " + addedText + "]\n"},
		"brackets, lines": {head + "trust: [\n  " + one + ",\n]\n", head + "trust: [\n  " + one + ", " + addedText + "\n]\n"},
		"a mapping": {head + "trust:\n  - key: a.pub\n    roles: [builder]\n    resources:\n      - oci://local/\n",
			head + "trust:\n  - key: a.pub\n    roles: [builder]\n    resources:\n      - oci://local/\n  - " + addedText + "\n"},
		"trust first": {"trust:\n  - " + one + "\nregistry: local\nenvironments: {staging: }\n",
			"trust:\n  - " + one + "\n  - " + addedText + "\nregistry: local\nenvironments: {staging: }\n"},
		"lines of Windows": {strings.ReplaceAll(head, "\n", "\r\n") + "trust:\r\n- " + one + "\r\n",
			strings.ReplaceAll(head, "\n", "\r\n") + "trust:\r\n- " + one + "\r\n- " + addedText + "\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := environments.AddTrust("environments.yaml", []byte(c.before), added)
			if err != nil || string(got) != c.after {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, c.after)
			}
		})
	}
}

func TestSetKeyState(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 21, 9, 0, 0, 5e6, time.FixedZone("", 3600))
	const head = "registry: local\nenvironments: {staging: {}}\n"
	const rest = `roles: [builder], resources: ["oci://local/"]`
	const state = "state: revoked, since: 2026-11-21T08:00:00Z"
	for name, c := range map[string]struct{ before, after string }{
		"in brackets": {head + "trust:\n- {key: a.pub, " + rest + "}\n- {key: b.pub, " + rest + "}\n",
			head + "trust:\n- {key: a.pub, " + rest + ", " + state + "}\n- {key: b.pub, " + rest + "}\n"},
		"two entries": {"version: 1\n" + head + "trust:\n- {key: a.pub, " + rest + "}\n- {key: a.pub, roles: [approver], resources: [oci://local/]}\n",
			"version: 1\n" + head + "trust:\n- {key: a.pub, " + rest + ", " + state +
				"}\n- {key: a.pub, roles: [approver], resources: [oci://local/], " + state + "}\n"},
		"a mapping": {"version: 1\n" + head + "trust:\n- key: a.pub # ours\n  roles: [builder] # builds\n  resources: [oci://local/]\n",
			"version: 1\n" + head +
				"trust:\n- key: a.pub # ours\n  roles: [builder] # builds\n  resources: [oci://local/]\n  state: revoked\n  since: 2026-11-21T08:00:00Z\n"},
		"retired before": {"version: 1\n" + head + "trust:\n- {key: a.pub, state: \"retired\", since: '2026-11-01T00:00:00Z', " + rest + "}\n",
			"version: 1\n" + head + "trust:\n- {key: a.pub, state: revoked, since: 2026-11-21T08:00:00Z, " + rest + "}\n"},
		"after a comment": {"# header\n\n" + head + "trust: [{key: a.pub, " + rest + "}]\n", "# header\n\n" + head + "trust: [{key: a.pub, " + rest + ", " + state + "}]\n"},
		"a name that is not ASCII": {"version: 1\n" + head + "trust:\n- {key: é.pub, " + rest + "}\n- {key: a.pub, " + rest + "}\n",
			"version: 1\n" + head + "trust:\n- {key: é.pub, " + rest + "}\n- {key: a.pub, " + rest + ", " + state + "}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := environments.SetKeyState("environments.yaml", []byte(c.before), "a.pub", evidence.KeyRevoked, since)
			if err != nil || string(got) != c.after {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, c.after)
			}
		})
	}
}

// What a command cannot change safely, it does not change.
func TestEditRefuses(t *testing.T) {
	t.Parallel()
	const file = "registry: local\nenvironments: {staging: {}}\ntrust:\n- {key: a.pub, roles: [builder], resources: [oci://local/]}\n"
	for name, c := range map[string]struct {
		edit func() ([]byte, error)
		code registry.Code
	}{
		"a broken file": {func() ([]byte, error) { return environments.AddTrust("f", []byte("registry: [\n"), added) }, registry.CodeInvalid},
		"an unknown role": {func() ([]byte, error) {
			return environments.AddTrust("f", []byte(file), trust.TrustEntry{Key: "b.pub",
				Roles: []evidence.Role{"boss"}, Resources: []string{"oci://local/"}})
		}, registry.CodeInvalid},
		"a comment before the bracket": {func() ([]byte, error) {
			text := strings.Replace(file, "trust:\n- ", "trust: [\n  ", 1)
			return environments.AddTrust("f", []byte(strings.TrimSuffix(text, "\n")+" # ours\n]\n"), added)
		}, registry.CodeInvalid},
		"another state of the key": {func() ([]byte, error) {
			text := "version: 1\n" + strings.Replace(file, "key: a.pub", "key: keys/new.pub, state: revoked, since: 2026-11-21T09:00:00Z", 1)
			return environments.AddTrust("f", []byte(text), added)
		}, registry.CodeInvalid},
		"an unknown key": {func() ([]byte, error) {
			return environments.SetKeyState("f", []byte(file), "b.pub", evidence.KeyRevoked, time.Now())
		}, registry.CodeNotFound},
		"no key": {func() ([]byte, error) {
			return environments.SetKeyState("f", []byte(file), "", evidence.KeyRevoked, time.Now())
		}, registry.CodeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := c.edit(); registry.CodeOf(err) != c.code || got != nil {
				t.Errorf("got %v\n%s\nwant code %v", err, got, c.code)
			}
		})
	}
}

// The first file is the default, but for whom it trusts.
func TestFirst(t *testing.T) {
	t.Parallel()
	got, err := environments.Parse("environments.yaml", environments.First(added))
	if err != nil || len(got.Trust) != 1 || got.Trust[0].Key != added.Key {
		t.Fatalf("got %v, %+v, want the one entry", err, got.Trust)
	}
	byDefault, err := environments.Parse("environments.yaml", environments.Default())
	if err != nil || len(got.List) != len(byDefault.List) || got.List[1].Name != byDefault.List[1].Name {
		t.Errorf("got %v, %+v, want the environments of the default %+v", err, got.List, byDefault.List)
	}
}
