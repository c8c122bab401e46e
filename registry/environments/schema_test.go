package environments_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/registry/policy"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(environments.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	if err := compiler.AddResource("environments", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("environments")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// validate checks a file against the schema only.
func validate(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(instance)
}

func TestPublishedSchema(t *testing.T) {
	t.Parallel()
	published, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", environments.SchemaFile))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(published, environments.Schema()) {
		t.Error("docs/reference/environments.schema.json is not what the code says: run go generate ./registry/environments")
	}
}

// The schema accepts what the reader accepts, and refuses files of the wrong shape.
func TestSchemaAgreesWithTheReader(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	const head = "registry: local\nenvironments: {staging: null, prod: {from: staging, require: [parity, separate-roles]}}\n"
	entry := func(s string) string {
		return "version: 1\n" + head + "trust:\n  - {" + s + ", roles: [verifier], resources: [\"oci://local/\"]}\n"
	}
	prod := func(s string) string {
		return "registry: local\nenvironments: {staging: null, prod: {from: staging, " + s + "}}\n" + trustYAML
	}
	for name, c := range map[string]struct {
		text  string
		valid bool
	}{
		"the default":                     {string(environments.Default()), true},
		"version 1":                       {head + trustYAML, true},
		"version 1, explicit":             {"version: 1\n" + head + trustYAML, true},
		"every key of a trust entry":      {allTrust, true},
		"version 2":                       {"version: 2\n" + head + trustYAML, false},
		"no trust":                        {head, false},
		"empty trust":                     {head + "trust: []\n", false},
		"unknown key":                     {"policy: x\n" + head + trustYAML, false},
		"require nothing":                 {"registry: local\nenvironments: {staging: {}, prod: {from: staging, require: []}}\n" + trustYAML, false},
		"unknown requirement":             {"registry: local\nenvironments: {staging: {}, prod: {from: staging, require: [party]}}\n" + trustYAML, false},
		"a slash in a name":               {"registry: local\nenvironments: {a/b: {}}\n" + trustYAML, false},
		"a window":                        {entry("key: k, from: 2026-11-21T09:00:00Z, until: 2026-12-21T09:00:00Z"), true},
		"a window of a retired key":       {entry("key: k, state: retired, since: 2026-11-21T09:00:00Z, until: 2026-12-21T09:00:00Z"), true},
		"roots":                           {entry("key: k") + "roots: [{sigstore: a.json}, {timestamps: b.pem}]\n", true},
		"no roots":                        {entry("key: k") + "roots: []\n", true},
		"a root of nothing":               {entry("key: k") + "roots: [{}]\n", false},
		"a root of both":                  {entry("key: k") + "roots: [{sigstore: a, timestamps: b}]\n", false},
		"a root by its path":              {entry("key: k") + "roots: [a.json]\n", false},
		"unknown state":                   {entry("key: k, state: gone"), false},
		"revoked without a time":          {entry("key: k, state: revoked"), false},
		"a time without a state":          {entry("key: k, since: 2026-11-21T09:00:00Z"), false},
		"key and identity":                {entry("key: k, identity: {issuer: https://example.com, subject: x}"), false},
		"neither key nor identity":        {entry("state: trusted"), false},
		"an identity for everybody":       {entry("identity: {issuer: https://example.com}"), false},
		"a pattern in an identity":        {entry("identity: {issuer: https://example.com, subject: 'a*'}"), false},
		"an unknown claim":                {entry("identity: {issuer: https://example.com, claims: {sub_di: '1'}}"), false},
		"an accuracy":                     {prod("accuracy: {metric: top1, min: 90%, regression: {max: 1%}}"), true},
		"cases":                           {prod("accuracy: {metric: top1, min: 0.9, cases: [\"sha256:" + strings.Repeat("a", 64) + "\"]}"), true},
		"cases by a name":                 {prod("accuracy: {metric: top1, min: 0.9, cases: [mine]}"), false},
		"an error":                        {prod("accuracy: {metric: rmse, max: 0.5}"), true},
		"an accuracy of nothing":          {prod("accuracy: {metric: top1}"), false},
		"an accuracy by no metric":        {prod("accuracy: {min: 0.9}"), false},
		"at least and at most":            {prod("accuracy: {metric: top1, min: 0.9, max: 1}"), false},
		"a negative regression":           {prod("accuracy: {metric: top1, regression: {max: -1%}}"), false},
		"words for a number":              {prod("accuracy: {metric: top1, min: most}"), false},
		"ceilings":                        {prod("ceilings: {int8: {max_error: {max: 2.5}, snr: {min: 12}}, fp16: {cosine: {min: 0.99}, equal: {min: 0.9}}}"), true},
		"a CI job":                        {prod("ci-job: {issuer: https://gitlab.com, claims: {project_id: 7}}"), true},
		"a CI job of any issuer":          {prod("ci-job: {claims: {project_id: \"7\"}}"), false},
		"a CI job of a name":              {prod("ci-job: {issuer: gitlab, claims: {project_id: 7}}"), false},
		"a CI job of anybody":             {prod("ci-job: {issuer: https://gitlab.com}"), false},
		"a CI job without a claim":        {prod("ci-job: {issuer: https://gitlab.com, claims: {}}"), false},
		"a CI job with lists of claims":   {prod("ci-job: {issuer: https://gitlab.com, claims: {project_id: [7]}}"), false},
		"ceilings of nothing":             {prod("ceilings: {}"), false},
		"a precision without a ceiling":   {prod("ceilings: {int8: {max_error: {max: 1}}, fp32: {}}"), true},
		"ceilings of a figure of reports": {prod("ceilings: {int8: {snrDb: {min: 12}}}"), false},
		"ceilings of a precision":         {prod("ceilings: {int9: {snr: {min: 12}}}"), false},
		"a ceiling the other way":         {prod("ceilings: {int8: {snr: {max: 12}}}"), false},
		"a ceiling without a side":        {prod("ceilings: {int8: {snr: 12}}"), false},
		"a list of ceilings":              {prod("ceilings: [int8]"), false},
		"an identity by its claims":       {entry("identity: {issuer: https://example.com, claims: {environment: production}}"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := validate(t, schema, c.text); (err == nil) != c.valid {
				t.Errorf("by the schema: %v, want valid %t, for\n%s", err, c.valid, c.text)
			}
			if _, err := environments.Parse("environments.yaml", []byte(c.text)); (err == nil) != c.valid {
				t.Errorf("by the reader: %v, want valid %t, for\n%s", err, c.valid, c.text)
			}
		})
	}
}

// The schema lists exactly the requirements that policy has.
func TestSchemaKnowsTheRequirements(t *testing.T) {
	t.Parallel()
	_, known, _ := strings.Cut((policy.Policy{Require: []string{"?"}}).Validate().Error(), "want one of ")
	requirements := strings.Split(known, ", ")
	schema := compiled(t)
	for _, name := range requirements {
		text := "registry: local\nenvironments: {staging: {}, prod: {from: staging, require: [" + name + "]}}\n" + trustYAML
		if err := validate(t, schema, text); err != nil {
			t.Errorf("requirement %s: %v", name, err)
		}
	}
	_, rest, _ := strings.Cut(string(environments.Schema()), `"items": {"enum": [`)
	listed, _, _ := strings.Cut(rest, "]")
	for name := range strings.SplitSeq(listed, ", ") {
		if name = strings.Trim(name, `"`); !slices.Contains(requirements, name) {
			t.Errorf("the schema has requirement %s, but policy has only %s", name, known)
		}
	}
}

// A ceiling can be on every figure of outputs, and the schema lists them.
func TestSchemaKnowsTheFigures(t *testing.T) {
	t.Parallel()
	schema := string(environments.Schema())
	for _, row := range figure.OfOutputs() {
		bound := "atMost"
		if row.AtLeast {
			bound = "atLeast"
		}
		if want := `"` + row.Key + `": {"$ref": "#/$defs/` + bound + `"}`; !strings.Contains(schema, want) {
			t.Errorf("the schema does not have %s", want)
		}
	}
}
