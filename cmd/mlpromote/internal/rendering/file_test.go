package rendering

import (
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

const (
	engineDigest  = registry.Digest("sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	imageDigest   = registry.Digest("sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc")
	releaseDigest = registry.Digest("sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb")
)

// answers knows one model, in prod of a service.
func answers(m Marker) (Target, error) {
	if m.Model != "vision/digits" {
		return Target{}, registry.Errorf(registry.CodeNotFound, "no model %s", m.Model)
	}
	t := Target{Host: "registry.example.com", Environment: "prod", Model: m.Model, Version: "1.2.0", Digest: releaseDigest}
	if m.Engine != "" || m.NodeType != "" {
		t.Digest, t.Image = engineDigest, imageDigest
	}
	return t, nil
}

// rendering gives what a file is after render.
func rendering(t *testing.T, text string) (string, error) {
	t.Helper()
	f, err := parse("deploy.yaml", []byte(text))
	if err == nil {
		err = f.answer(answers)
	}
	if err != nil {
		return "", err
	}
	data, err := f.rendered()
	return string(data), err
}

func TestRender(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"an image volume": {
			"volumes:\n- name: model\n  image:\n    reference: \"\"  # {\"$mlpromote\": \"vision/digits\", \"node-type\": \"g6.xlarge\", \"write\": \"image\"}\n    pullPolicy: IfNotPresent\n",
			"volumes:\n- name: model\n  image:\n    reference: \"registry.example.com/prod/vision/digits@IMAGE\"  # {\"$mlpromote\": \"vision/digits\", \"node-type\": \"g6.xlarge\", \"write\": \"image\"}\n    pullPolicy: IfNotPresent\n",
		},
		"a URI in the second document": {
			"a: 1\n---\nspec:\n  storageUri: oci://old@sha256:00 # {\"$mlpromote\": \"vision/digits\", \"engine\": \"cpu/int8\", \"write\": \"oci+native\"}\n",
			"a: 1\n---\nspec:\n  storageUri: oci+native://registry.example.com/prod/vision/digits@IMAGE # {\"$mlpromote\": \"vision/digits\", \"engine\": \"cpu/int8\", \"write\": \"oci+native\"}\n",
		},
		"an image that Kustomize changes": {
			"images:\n- name: digits\n  digest: x # {\"$mlpromote\": \"vision/digits\", \"engine\": \"cpu/int8\", \"write\": \"image-digest\"}\n",
			"images:\n- name: digits\n  digest: IMAGE # {\"$mlpromote\": \"vision/digits\", \"engine\": \"cpu/int8\", \"write\": \"image-digest\"}\n",
		},
		"Kustomize, and a marker of another tool": {
			"images:\n- name: digits\n  newName: x # {\"$mlpromote\": \"vision/digits\", \"write\": \"repository\"}\n  digest: 'y' # {\"$mlpromote\": \"vision/digits\", \"write\": \"digest\"}\n- image: z # {\"$imagepolicy\": \"ns:policy\"}\n",
			"images:\n- name: digits\n  newName: registry.example.com/prod/vision/digits # {\"$mlpromote\": \"vision/digits\", \"write\": \"repository\"}\n  digest: 'RELEASE' # {\"$mlpromote\": \"vision/digits\", \"write\": \"digest\"}\n- image: z # {\"$imagepolicy\": \"ns:policy\"}\n",
		},
		"an empty value": {
			"model:\n  version: # {\"$mlpromote\": \"vision/digits\", \"write\": \"version\"}\n",
			"model:\n  version: 1.2.0 # {\"$mlpromote\": \"vision/digits\", \"write\": \"version\"}\n",
		},
		"an item of a list": {
			"args:\n- --model\n- old # {\"$mlpromote\": \"vision/digits\"}\n",
			"args:\n- --model\n- registry.example.com/prod/vision/digits@RELEASE # {\"$mlpromote\": \"vision/digits\"}\n",
		},
		"ends of lines of Windows, and letters of more than one byte": {
			"ключ: \"é\" # {\"$mlpromote\": \"vision/digits\", \"write\": \"version\"}\r\nb: 2\r\n",
			"ключ: \"1.2.0\" # {\"$mlpromote\": \"vision/digits\", \"write\": \"version\"}\r\nb: 2\r\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := strings.NewReplacer("ENGINE", string(engineDigest), "IMAGE", string(imageDigest), "RELEASE", string(releaseDigest)).Replace(c.want)
			got, err := rendering(t, c.text)
			if err != nil || got != want {
				t.Fatalf("rendered as\n%s\n(error %v), want\n%s", got, err, want)
			}
			if again, err := rendering(t, got); err != nil || again != got {
				t.Errorf("rendered again as\n%s\n(error %v), want no change", again, err)
			}
		})
	}
}

func TestRefuseMarkers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"no value":              {"# {\"$mlpromote\": \"vision/digits\"}\na: 1\n", "no value in front of it"},
		"a list of flow":        {"a: [x] # {\"$mlpromote\": \"vision/digits\"}\n", "no value in front of it"},
		"a block":               {"a: |\n  text # {\"$mlpromote\": \"vision/digits\"}\nb: 1 # {\"$mlpromote\": \"none\"}\n", "no model none"},
		"two lines":             {"a: one\n  two # {\"$mlpromote\": \"vision/digits\"}\n", "no value in front of it"},
		"an alias":              {"a: &x 1\nb: *x # {\"$mlpromote\": \"vision/digits\"}\n", "no value in front of it"},
		"another field":         {"a: 1 # {\"$mlpromote\": \"vision/digits\", \"tag\": \"v1\"}\n", `unknown field "tag"`},
		"another form":          {"a: 1 # {\"$mlpromote\": \"vision/digits\", \"write\": \"tag\"}\n", "want one of [ref digest image image-digest oci+native oci+fetch oci repository version]"},
		"an image of a release": {"a: 1 # {\"$mlpromote\": \"vision/digits\", \"write\": \"image\"}\n", "want engine or node-type"},
		"a release in a volume": {"volumes:\n- image:\n    reference: x # {\"$mlpromote\": \"vision/digits\"}\n", "container runtimes mount images alone"},
		"a ref for KServe":      {"model:\n  storageUri: x # {\"$mlpromote\": \"vision/digits\", \"engine\": \"cpu/int8\", \"write\": \"image\"}\n", "KServe wants a scheme"},
		"an engine in a volume": {"a: {b: 1}\nspec:\n  volumes: # of the pod\n  - name: m\n    image:\n      pullPolicy: Always\n      reference: x # {\"$mlpromote\": \"vision/digits\", \"engine\": \"cpu/int8\"}\n", "container runtimes mount images alone"},
		"both":                  {"a: 1 # {\"$mlpromote\": \"vision/digits\", \"engine\": \"a/b\", \"node-type\": \"c\"}\n", "not both"},
		"two markers":           {"a: 1 # {\"$mlpromote\": \"vision/digits\"} # {\"$mlpromote\": \"vision/digits\"}\n", "something behind it"},
		"a strange model":       {"a: 1 # {\"$mlpromote\": \"../x\"}\n", "deploy.yaml:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := rendering(t, c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) || registry.CodeOf(err) == registry.CodeInternal {
				t.Errorf("rendered as %q with error %v, want an error with %q", got, err, c.want)
			}
		})
	}
}

// What only this machine has is nothing that a cluster could fetch.
func TestRefuseDataDirectory(t *testing.T) {
	t.Parallel()
	for _, form := range forms() {
		_, err := Target{Environment: "prod", Model: "vision/digits", Version: "1.2.0", Digest: engineDigest, Image: imageDigest}.text(form)
		if refused := err != nil; refused == slices.Contains([]Form{FormDigest, FormImageDigest, FormVersion}, form) {
			t.Errorf("%s of a data directory: error %v", form, err)
		}
	}
}

// FuzzRender checks that nothing outside of marked values changes, and that a second run changes nothing.
func FuzzRender(f *testing.F) {
	for _, seed := range []string{
		"a: 1 # {\"$mlpromote\": \"vision/digits\"}\n", "- 'x' # {\"$mlpromote\": \"vision/digits\", \"write\": \"digest\"}",
		"a: # {\"$mlpromote\": \"vision/digits\"}\r\nb: |\n c # {\"$mlpromote\": 1}\n",
		"\t: \"\\u0041\" # {\"$mlpromote\": \"vision/digits\"}",
		"a: é'' # {\"$mlpromote\":\"vision/digits\"}\n---\n? b\n: c # {\"$mlpromote\":\"vision/digits\"}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := rendering(t, text)
		if err != nil {
			return
		}
		was, is := strings.SplitAfter(text, "\n"), strings.SplitAfter(got, "\n")
		if len(was) != len(is) {
			t.Fatalf("%q became %q, which has another number of lines", text, got)
		}
		for n := range was {
			if was[n] != is[n] && !strings.Contains(was[n], markerKey) {
				t.Errorf("line %d of %q changed to %q without a marker", n+1, text, is[n])
			}
		}
		if again, err := rendering(t, got); err != nil || again != got {
			t.Errorf("%q became %q, and then %q (error %v)", text, got, again, err)
		}
	})
}
