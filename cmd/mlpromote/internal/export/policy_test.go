package export

import (
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/signer"
)

// fullAdmission has everything that a policy can have.
func fullAdmission() Admission {
	key := func(seed string, state evidence.KeyState) AdmitKey {
		return AdmitKey{
			ID: digest.FromString(seed).Encoded(), Names: []string{seed}, State: state,
			pem: "-----BEGIN PUBLIC KEY-----\n" + seed + "\n-----END PUBLIC KEY-----\n",
		}
	}
	return Admission{
		Environment: "prod", Host: "registry.example:5000", ResourceURI: "oci://local/prod/", VerifierID: evidence.VerifierID("local"),
		Levels: []string{evidence.VSALevelParity, evidence.VSALevelBreakGlass}, Keys: []AdmitKey{key("a", evidence.KeyTrusted), key("b", evidence.KeyRetired)},
		Denied:          []Denied{{Digest: digest.FromString("engine"), Model: "vision/digits", Kind: "engine", Unmet: []string{"no-quarantine"}}},
		RestrictionList: 3, Repositories: []string{"staging", "prod"}, registry: "local",
	}
}

var at = time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC)

// Every object of a policy is YAML with a name that Kubernetes takes, and says on what it rests.
func TestPolicyObjects(t *testing.T) {
	t.Parallel()
	one := fullAdmission()
	one.Model, one.ResourceURI = "vision/digits", "oci://local/prod/vision/digits"
	none := fullAdmission()
	none.Denied = nil
	for name, c := range map[string]struct {
		consumer string
		of       Admission
		names    []string
	}{
		"kyverno":                           {ForKyverno, fullAdmission(), []string{"mlpromote-prod"}},
		"policy-controller":                 {ForPolicyController, fullAdmission(), []string{"mlpromote-prod", "mlpromote-prod-denied"}},
		"policy-controller, nothing denied": {ForPolicyController, none, []string{"mlpromote-prod", "mlpromote-prod-denied"}},
		"one model":                         {ForKyverno, one, []string{"mlpromote-prod-vision-digits-" + digest.FromString("prod/vision/digits").Encoded()[:8]}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := c.of.YAML(c.consumer, at)
			if err != nil {
				t.Fatal(err)
			}
			decoder := yaml.NewDecoder(strings.NewReader(text))
			for _, want := range c.names {
				var object struct {
					Metadata struct {
						Name        string
						Annotations map[string]string
					}
				}
				if err := decoder.Decode(&object); err != nil {
					t.Fatal(err)
				}
				m := object.Metadata
				if m.Name != want || m.Annotations[exportedAt] != "2026-11-23T18:00:00Z" || m.Annotations[restrictionList] != "3" {
					t.Errorf("object %q with annotations %v, want %q of that time and list 3", m.Name, m.Annotations, want)
				}
			}
			for _, d := range c.of.Denied {
				if !strings.Contains(text, string(d.Digest)) {
					t.Errorf("the policy does not have %s, which it denies", d.Digest)
				}
			}
		})
	}
	if _, err := fullAdmission().YAML("gatekeeper", at); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("for gatekeeper: error %v, want CodeInvalid", err)
	}
}

// Two names are never one object, whatever their characters.
func TestPolicyNames(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, of := range [][2]string{
		{"prod", ""}, {"prod", "a"}, {"prod", "a/b"}, {"prod", "a-b"}, {"prod", "a_b"}, {"prod-a", "b"}, {"prod", strings.Repeat("a", 100)}, {"prod", strings.Repeat("a", 101)},
	} {
		a := Admission{Environment: of[0], Model: of[1]}
		name := a.name()
		if before, ok := seen[name]; ok || len(name) > 63 {
			t.Errorf("%v has the name %q (%d bytes), as %q", of, name, len(name), before)
		}
		seen[name] = of[0] + " " + of[1]
	}
}

// An engine that one release may use is not denied because another release that has it may not be used.
func TestSharedEngine(t *testing.T) {
	t.Parallel()
	refuse := policy.Decision{Requirements: []policy.Requirement{{Name: "no-quarantine"}}}
	allow := policy.Decision{Requirements: []policy.Requirement{{Name: "no-quarantine", Met: true}}}
	both, bad := digest.FromString("both"), digest.FromString("bad")
	for name, order := range map[string][]policy.Decision{"refused first": {refuse, allow}, "allowed first": {allow, refuse}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := denials{objected: map[registry.Digest]*Denied{}, allowed: map[registry.Digest]bool{}}
			for _, d := range order {
				f.decide(both, "m", "engine", d)
				f.decide(bad, "m", "engine", refuse)
			}
			got := f.list()
			if len(got) != 1 || got[0].Digest != bad || len(got[0].Unmet) != 1 {
				t.Errorf("denied %v, want only the engine that no release may use", got)
			}
		})
	}
	f := denials{objected: map[registry.Digest]*Denied{}, allowed: map[registry.Digest]bool{}}
	f.decide(both, "m", "release", policy.Decision{})
	if len(f.list()) != 1 {
		t.Error("a decision without a requirement, which allows nothing, denies nothing")
	}
}

// A revoked key, and one whose window has not begun, are not accepted; others are.
func TestRefusedKeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key  signer.RoleKey
		want bool
	}{
		"trusted":       {signer.RoleKey{State: evidence.KeyTrusted}, true},
		"retired":       {signer.RoleKey{State: evidence.KeyRetired}, true},
		"window over":   {signer.RoleKey{State: evidence.KeyTrusted, Window: evidence.Window{Until: at.Add(-time.Hour)}}, true},
		"revoked":       {signer.RoleKey{State: evidence.KeyRevoked}, false},
		"not yet begun": {signer.RoleKey{State: evidence.KeyTrusted, Window: evidence.Window{From: at.Add(time.Hour)}}, false},
		"no state":      {signer.RoleKey{}, false},
	} {
		if got := refuses(c.key, at) == ""; got != c.want {
			t.Errorf("%s: accepted %t, want %t", name, got, c.want)
		}
	}
}

func FuzzAnnotated(f *testing.F) {
	text, err := fullAdmission().YAML(ForKyverno, at)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(strings.Replace(text, `"3"`, `"-3"`, 1))
	f.Fuzz(func(t *testing.T, text string) {
		if _, counter, err := annotated("file", text); err == nil && counter < 0 {
			t.Errorf("counter %d of %q", counter, text)
		}
	})
}
