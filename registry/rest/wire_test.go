package rest_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/rest"
)

func operations() []string {
	return []string{
		rest.OpResolve, rest.OpReleases, rest.OpRelease, rest.OpEngines, rest.OpEngine, rest.OpComparison, rest.OpBundle, rest.OpPublications,
		rest.OpEvidence, rest.OpQuarantines, rest.OpPromotions, rest.OpRollbacks, rest.OpHolds, rest.OpHoldReleases, rest.OpAcceptances,
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
			path, err := rest.ModelPath(model, operation)
			if err != nil {
				t.Errorf("%s of %s: %v", operation, model, err)
				continue
			}
			m, o, err := rest.ParseModelPath(path)
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
		if path, err := rest.ModelPath(model, rest.OpResolve); registry.CodeOf(err) != registry.CodeNotFound || path != "" {
			t.Errorf("model %q has the path %q, error %v, want CodeNotFound", model, path, err)
		}
		if _, _, err := rest.ParseModelPath(rest.ModelsPath + model + "/" + rest.OpResolve); registry.CodeOf(err) != registry.CodeNotFound {
			t.Errorf("the path of model %q is read, error %v, want CodeNotFound", model, err)
		}
	}
	for _, path := range []string{"", "/", rest.ModelsPath, rest.ModelsPath + "digits",
		rest.ModelsPath + "/resolve", "/api/v2/models/a/resolve", "a/resolve"} {
		if m, o, err := rest.ParseModelPath(path); registry.CodeOf(err) != registry.CodeNotFound {
			t.Errorf("%q is %q of %q, error %v, want CodeNotFound", path, o, m, err)
		}
	}
}

func FuzzParseModelPath(f *testing.F) {
	f.Add(rest.ModelsPath + "vision/digits/resolve")
	f.Add(rest.ModelsPath + "a/releases/claims")
	f.Add(rest.ModelsPath + "/")
	f.Add("../..")
	f.Fuzz(func(t *testing.T, path string) {
		model, operation, err := rest.ParseModelPath(path)
		if err != nil {
			if registry.CodeOf(err) != registry.CodeNotFound || model != "" || operation != "" {
				t.Fatalf("%q: %q, %q, error %v", path, model, operation, err)
			}
			return
		}
		again, err := rest.ModelPath(model, operation)
		if err != nil || again != path {
			t.Fatalf("%q is %q of %q, which has the path %q (error %v)", path, operation, model, again, err)
		}
	})
}
