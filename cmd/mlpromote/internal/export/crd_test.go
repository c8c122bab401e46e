package export

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// definition is a CRD in a module: testdata/crds/go.sum has the hashes of the modules.
type definition struct{ module, file string }

func definitions() map[string]definition {
	return map[string]definition{
		ForKyverno:          {"github.com/kyverno/api@v0.0.1-alpha.3.0.20260723090831-fb2785727f98", "config/crds/policies.kyverno.io_imagevalidatingpolicies.yaml"},
		ForPolicyController: {"github.com/sigstore/policy-controller@v0.15.1", "config/300-clusterimagepolicy.yaml"},
	}
}

// Every policy is what the CRD of its controller says, without a field that the API server would drop.
func TestPoliciesByTheirDefinitions(t *testing.T) {
	t.Parallel()
	none := fullAdmission()
	none.Denied = nil
	elsewhere := fullAdmission()
	elsewhere.Summaries = "registry.example:5000/staging/summaries"
	for consumer, d := range definitions() {
		t.Run(consumer, func(t *testing.T) {
			t.Parallel()
			crd := d.read(t)
			for name, a := range map[string]Admission{"full": fullAdmission(), "nothing denied": none, "summaries elsewhere": elsewhere} {
				text, err := a.YAML(consumer, at)
				if err != nil {
					t.Fatal(err)
				}
				objects := strings.Split(text, "\n---\n")
				for i, object := range objects {
					if err := crd.validate(t, object); err != nil {
						t.Errorf("%s, object %d of %d: %v", name, i+1, len(objects), err)
					}
				}
				if err := crd.validate(t, strings.Replace(objects[0], "\nspec:\n", "\nspec:\n  imagess: []\n", 1)); err == nil {
					t.Errorf("%s: a field that is not in the definition was accepted", name)
				}
			}
		})
	}
}

// customResource is the part of a CRD that a test reads.
type customResource struct {
	Spec struct {
		Group    string
		Names    struct{ Kind string }
		Versions []struct {
			Name   string
			Schema struct{ OpenAPIV3Schema map[string]any }
		}
	}
}

func (d definition) read(t *testing.T) customResource {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", d.module)
	cmd.Dir, cmd.Env = filepath.Join("testdata", "crds"), append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	out, err := cmd.Output()
	var module struct{ Dir, Error string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatalf("go mod download %s: %v\n%s", d.module, err, out)
	}
	if err != nil {
		t.Skipf("no proxy for modules can be reached: %s", module.Error)
	}
	data, err := os.ReadFile(filepath.Join(module.Dir, filepath.FromSlash(d.file)))
	if err != nil {
		t.Fatal(err)
	}
	var crd customResource
	for _, document := range strings.Split("\n"+string(data), "\n---\n") {
		if strings.Contains(document, "kind: CustomResourceDefinition") {
			if err := yaml.Unmarshal([]byte(document), &crd); err != nil {
				t.Fatal(err)
			}
		}
	}
	return crd
}

// validate compares an object with the schema of its version.
func (c customResource) validate(t *testing.T, object string) error {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	var head struct{ APIVersion, Kind string }
	if err := json.Unmarshal(text, &head); err != nil {
		t.Fatal(err)
	}
	for _, v := range c.Spec.Versions {
		if head.Kind != c.Spec.Names.Kind || head.APIVersion != c.Spec.Group+"/"+v.Name {
			continue
		}
		schema := v.Schema.OpenAPIV3Schema
		closeObjects(schema)
		properties := schema["properties"].(map[string]any)
		for _, name := range []string{"apiVersion", "kind", "metadata"} { // what every object has
			properties[name] = map[string]any{}
		}
		compiler := jsonschema.NewCompiler()
		compiler.DefaultDraft(jsonschema.Draft7)
		if err := compiler.AddResource("crd.json", schema); err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return compiler.MustCompile("crd.json").Validate(value)
	}
	t.Fatalf("%s of %s is not in the definition", head.Kind, head.APIVersion)
	return nil
}

// closeObjects refuses fields that a schema does not name, where the API server would drop them.
func closeObjects(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		_, named := s["properties"]
		_, more := s["additionalProperties"]
		if _, keeps := s["x-kubernetes-preserve-unknown-fields"]; named && !more && !keeps && s["type"] == "object" {
			s["additionalProperties"] = false
		}
		for _, part := range s {
			closeObjects(part)
		}
	case []any:
		for _, part := range s {
			closeObjects(part)
		}
	}
}
