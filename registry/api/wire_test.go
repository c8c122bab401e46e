package api_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
)

func operations() []string {
	return []string{
		api.OpResolve, api.OpReleases, api.OpRelease, api.OpEngines, api.OpEngine, api.OpComparison, api.OpBundle, api.OpPublications,
		api.OpEvidence, api.OpQuarantines, api.OpPromotions, api.OpRollbacks, api.OpHolds, api.OpHoldReleases, api.OpAcceptances,
	}
}

// Names that are called like operations are where a path could be read in two ways.
func TestModelPathsReadBack(t *testing.T) {
	t.Parallel()
	models := []string{"digits", "vision/digits", "a/b/c/d", "a.b/c_d/e-f"}
	for _, one := range operations() {
		for _, two := range operations() {
			models = append(models, one, one+"/"+two, "vision/"+one, one+"/x/"+two)
		}
	}
	for _, model := range models {
		for _, operation := range operations() {
			path, err := api.ModelPath(model, operation)
			if err != nil {
				t.Errorf("%s of %s: %v", operation, model, err)
				continue
			}
			m, o, err := api.ParseModelPath(path)
			if err != nil || m != model || o != operation {
				t.Errorf("%s is read as %q of %q (error %v), want %q of %q", path, o, m, err, operation, model)
			}
		}
	}
}

func TestModelPathRefuses(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"", "..", "../environments", "a/../b", "/a", "a/", "A",
		"a b", "a?x=y", "a%2fb", "sources", "a/sources", "a\x00b", strings.Repeat("a", 256)} {
		if path, err := api.ModelPath(model, api.OpResolve); registry.CodeOf(err) != registry.CodeNotFound || path != "" {
			t.Errorf("model %q has the path %q, error %v, want CodeNotFound", model, path, err)
		}
		if _, _, err := api.ParseModelPath(api.ModelsPath + model + "/" + api.OpResolve); registry.CodeOf(err) != registry.CodeNotFound {
			t.Errorf("the path of model %q is read, error %v, want CodeNotFound", model, err)
		}
	}
	for _, path := range []string{"", "/", api.ModelsPath, api.ModelsPath + "digits",
		api.ModelsPath + "/resolve", "/api/v2/models/a/resolve", "a/resolve"} {
		if m, o, err := api.ParseModelPath(path); registry.CodeOf(err) != registry.CodeNotFound {
			t.Errorf("%q is %q of %q, error %v, want CodeNotFound", path, o, m, err)
		}
	}
}

func FuzzParseModelPath(f *testing.F) {
	f.Add(api.ModelsPath + "vision/digits/resolve")
	f.Add(api.ModelsPath + "a/releases/claims")
	f.Add(api.ModelsPath + "/")
	f.Add("../..")
	f.Fuzz(func(t *testing.T, path string) {
		model, operation, err := api.ParseModelPath(path)
		if err != nil {
			if registry.CodeOf(err) != registry.CodeNotFound || model != "" || operation != "" {
				t.Fatalf("%q: %q, %q, error %v", path, model, operation, err)
			}
			return
		}
		again, err := api.ModelPath(model, operation)
		if err != nil || again != path {
			t.Fatalf("%q is %q of %q, which has the path %q (error %v)", path, operation, model, again, err)
		}
	})
}
