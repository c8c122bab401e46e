package policy_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/policy"
)

// chain is staging -> prod -> edge, with a second way out of staging.
func chain() policy.Environments {
	require := policy.DefaultRequire()
	return policy.Environments{Registry: "local", List: []policy.Environment{
		{Name: "staging"}, {Name: "prod", From: "staging", Require: require},
		{Name: "edge", From: "prod", Require: require}, {Name: "lab", From: "staging", Require: require},
	}}
}

func TestEnvironmentsValidate(t *testing.T) {
	t.Parallel()
	good := chain()
	if err := good.Validate(); err != nil {
		t.Fatalf("the chain that the cases change: %v", err)
	}
	for _, c := range []struct {
		says string
		edit func(es *policy.Environments)
	}{
		{"registry", func(es *policy.Environments) { *es = policy.Environments{} }},
		{"registry", func(es *policy.Environments) { es.Registry = "Local" }},
		{"at least one", func(es *policy.Environments) { es.List = nil }},
		{"the first without from", func(es *policy.Environments) { es.List = es.List[1:] }},
		{"lower-case", func(es *policy.Environments) { es.List[0].Name = "" }},
		{"lower-case", func(es *policy.Environments) { es.List[0].Name = "Staging" }},
		{"without '/'", func(es *policy.Environments) { es.List[0].Name = "a/b" }},
		{"without '.'", func(es *policy.Environments) { es.List[3].Name = "eu.lab" }},
		{"localhost", func(es *policy.Environments) { es.List[3].Name = "localhost" }},
		{"is not the name of an environment above it", func(es *policy.Environments) { es.List[1].From = "nowhere" }},
		{"is not the name of an environment above it", func(es *policy.Environments) { es.List[1].From = "prod" }},
		{"is not the name of an environment above it", func(es *policy.Environments) { es.List[1].From = "edge" }},
		{"twice", func(es *policy.Environments) { es.List[3].Name = "prod" }},
		{"HOST[:PORT]", func(es *policy.Environments) { es.List[1].Registry = "registry" }},
		{"HOST[:PORT]", func(es *policy.Environments) { es.List[1].Registry = "https://registry.example.com" }},
		{"HOST[:PORT]", func(es *policy.Environments) { es.List[0].Registry = "registry.example.com/team" }},
		{"requirement \"secrecy\"", func(es *policy.Environments) { es.List[1].Require = []string{"secrecy"} }},
		{"no-quarantine", func(es *policy.Environments) { es.List[1].Require = []string{"no-quarantine"} }},
		{"listed twice", func(es *policy.Environments) { es.List[1].Require = []string{"parity", "parity"} }},
		{"no effect without from", func(es *policy.Environments) { es.List[0].Require = policy.DefaultRequire() }},
	} {
		es := chain()
		c.edit(&es)
		err := es.Validate()
		if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: error %v, want CodeInvalid that says %q", es.List, err, c.says)
		}
	}
}

// What Validate takes as the registry of an environment, a reference can begin with.
func TestEveryRegistryCanBeReferredTo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.OneOf(rapid.StringMatching(`[a-zA-Z0-9.:/-]{1,12}`),
			rapid.StringMatching(`\[[0-9a-f:]{2,9}\](:[0-9]{1,5})?`), rapid.Just("localhost")).Draw(t, "host")
		es := policy.Environments{Registry: "local", List: []policy.Environment{{Name: "staging", Registry: host}}}
		if es.Validate() != nil {
			return
		}
		want := registry.Ref{Host: host, Environment: "staging", Model: "m"}
		if got, err := registry.ParseRef(want.String()); err != nil || got != want {
			t.Fatalf("registry %q: %s was read as %+v, error %v", host, want, got, err)
		}
	})
}

// What Validate takes as the name of an environment, a reference can name.
func TestEveryEnvironmentCanBeReferredTo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.StringMatching(`[a-z0-9._:/-]{1,12}`), rapid.Just("localhost")).Draw(t, "name")
		es := policy.Environments{Registry: "local", List: []policy.Environment{{Name: name}}}
		if es.Validate() != nil {
			return
		}
		want := registry.Ref{Environment: name, Model: "m"}
		if got, err := registry.ParseRef(want.String()); err != nil || got != want {
			t.Fatalf("environment %q: %s was read as %+v, error %v", name, want, got, err)
		}
	})
}

func TestEdge(t *testing.T) {
	t.Parallel()
	short := policy.Environments{Registry: "local", List: chain().List[:2]}
	for _, c := range []struct {
		es       policy.Environments
		from, to string
		want     string // "FROM TO", or a code
	}{
		{short, "", "", "staging prod"},
		{short, "staging", "", "staging prod"},
		{short, "", "prod", "staging prod"},
		{short, "staging", "prod", "staging prod"},
		{short, "prod", "", "invalid"},
		{short, "", "staging", "invalid"},
		{short, "prod", "staging", "invalid"},
		{short, "nowhere", "", "not_found"},
		{short, "", "nowhere", "not_found"},
		{chain(), "", "", "invalid"},
		{chain(), "staging", "", "invalid"},
		{chain(), "staging", "lab", "staging lab"},
		{chain(), "", "edge", "prod edge"},
		{chain(), "prod", "", "prod edge"},
		{chain(), "staging", "edge", "invalid"},
		{policy.Environments{}, "", "", "invalid"},
	} {
		source, destination, err := c.es.Edge(c.from, c.to)
		got := source.Name + " " + destination.Name
		if err != nil {
			got = string(registry.CodeOf(err))
		}
		if got != c.want {
			t.Errorf("edge from %q to %q among %d: got %s, want %s (error %v)", c.from, c.to, len(c.es.List), got, c.want, err)
		}
	}
}

func TestFindAndResource(t *testing.T) {
	t.Parallel()
	es := chain()
	if e, err := es.Find("edge"); err != nil || e.From != "prod" || !e.Protected() || es.First().Protected() {
		t.Errorf("edge is %+v, error %v", e, err)
	}
	if _, err := es.Find("moon"); registry.CodeOf(err) != registry.CodeNotFound || !strings.Contains(err.Error(), "staging, prod, edge, lab") {
		t.Errorf("error %v, want CodeNotFound that names those there are", err)
	}
	if got := es.ResourceURI("prod", "vision/digits"); got != "oci://local/prod/vision/digits" {
		t.Errorf("resource is %s", got)
	}
}
