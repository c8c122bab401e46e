package spec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
)

func TestParseSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]spec.Size{
		"0": 0, "12": 12, "12B": 12, "6 GB": 6e9, "1.5KiB": 1536, "20GiB": 20 << 30, "1TB": 1e12,
		"9223372036854774784": 9223372036854774784, // the largest float64 that an int64 can hold
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			if got, err := spec.ParseSize(text); err != nil || got != want {
				t.Errorf("got %d, error %v; want %d", got, err, want)
			}
		})
	}
	for name, text := range map[string]string{
		"nothing": "", "no number": "GiB", "word": "much", "unknown unit": "5XB", "two units": "5KBMB", "negative": "-1", "not a number": "NaN",
		"infinite": "Inf", "one more than fits": "9223372036854775808", "far too large": "1e30TiB",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := spec.ParseSize(text); registry.CodeOf(err) != registry.CodeInvalid {
				t.Errorf("got %d, error %v; want CodeInvalid", got, err)
			}
		})
	}
}

// Values at a limit are on the side of it that the message says.
func TestValuesAtLimits(t *testing.T) {
	t.Parallel()
	weights := func(input string) string {
		return change("source: m.onnx", "source: {path: m.onnx, format: safetensors, architecture: {kind: mlp, input: ["+input+"], layers: [fc]}}")
	}
	generated := func(n string) string { return change("cases: cases/", "cases: {generate: "+n+"}") }
	aware := "variants: [{name: int8, quantize: {method: static, tool: nncf, accuracy_aware: true}}]"
	for name, c := range map[string]struct{ text, want string }{
		"input of one number":  {weights("1"), ""},
		"input of no number":   {weights("0"), "3:78 input [0]: want 1 sizes of at least 1"},
		"one generated case":   {generated("1"), ""},
		"most generated cases": {generated("100000"), ""},
		"too many cases":       {generated("100001"), "4:19 cases are missing: want a folder, or {generate: N, seed: S} with N from 1 to 100000"},
		"declared values":      {generated("1, inputs: {x: {min: 0, max: 0}, z: {values: [1]}}"), ""},
		"min without max":      {generated("1, inputs: {x: {min: 0}}"), "4:34 want min and max, or values"},
		"values and min":       {generated("1, inputs: {x: {min: 0, max: 1, values: [1]}}"), "4:34 want min and max, or values"},
		"no values":            {generated("1, inputs: {x: {}}"), "4:34 want min and max, or values"},
		"min above max":        {generated("1, inputs: {x: {min: 1, max: 0}}"), "4:34 min 1 is above max 0"},
		"values of recorded":   {change("cases: cases/", "cases: {path: cases/, inputs: {x: {values: [1]}}}"), "4:31 recorded cases have values already: remove the key"},
		"latency of no time":   {small + "limits: {latency: {p99: {max: 0ms}}}\n", `8:31 found "0ms": want a time of more than nothing with its unit, such as 20ms, 150us or 1.5s`},
		"accuracy to keep": {strings.Replace(change("variants: [fp32, int8]", aware), "cases/", "{path: cases/, labels: l}", 1) +
			"limits: {accuracy: {metric: top1, drop: {max: 1%}}}\n", ""},
		"no accuracy to keep": {change("variants: [fp32, int8]", aware),
			"7:80 accuracy_aware keeps the drop of limits.accuracy for metric top1 and there is none: add limits: {accuracy: {metric: top1, drop: {max: 0.5%}}}"},
		"shared cache":           {small + "cache: oci://registry.example.com/team/cache\n", ""},
		"shared cache elsewhere": {small + "cache: s3://bucket/cache\n", `8:8 cache "s3://bucket/cache": want oci://HOST[:PORT]/REPOSITORY, such as oci://registry.example.com/team/build-cache`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, c.text)
			got := ""
			if err != nil {
				got = problems(t, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s%s", c.text, diff)
			}
		})
	}
}

// The address of the shared cache is read and written in one form.
func TestCacheAddress(t *testing.T) {
	t.Parallel()
	s, err := load(t, small+"cache: oci://registry.example.com:5000/team/cache\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := (spec.Cache{Host: "registry.example.com:5000", Repository: "team/cache"}); s.Cache != want ||
		s.Cache.String() != "oci://registry.example.com:5000/team/cache" {
		t.Errorf("cache %+v, written %q; want %+v", s.Cache, s.Cache, want)
	}
	if text := (spec.Cache{}).String(); text != "" {
		t.Errorf("no cache is written %q, want nothing", text)
	}
}

// All targets of a toolchain share one install: a Python, an image, or the one from the lock file.
func TestInstallOfTargets(t *testing.T) {
	t.Parallel()
	targets := func(toolchains ...string) string {
		var lines strings.Builder
		for i, toolchain := range toolchains {
			lines.WriteString("\n  - {name: t" + string(rune('a'+i)) + ", cpu: {arch: amd64}, toolchain: " + toolchain + "}")
		}
		return change("targets: [linux/amd64/v3, linux/amd64, linux/arm64]", "targets:"+lines.String())
	}
	image := func(name string) string { return "{name: openvino, image: \"" + name + "\"}" }
	for name, c := range map[string]struct{ text, want string }{
		"image":         {targets(image("registry.example.com/openvino:2026.4")), ""},
		"one image":     {targets(image("openvino:1"), image("openvino:1")), ""},
		"lock file":     {targets("openvino", "openvino"), ""},
		"two images":    {targets(image("openvino:1"), image("openvino:2")), "target tb asks for another Python or image of openvino than target ta: want one for all"},
		"image, python": {targets("{name: openvino, image: \"openvino:1\", python: vocab.txt}"), "target ta asks for a Python and an image: want one of them"},
		"a provider twice": {targets("{name: onnxruntime, providers: [CPUExecutionProvider, CPUExecutionProvider]}"),
			`execution provider "CPUExecutionProvider" is here twice`},
		"no version":    {targets("{name: openvino, version: latest}"), `toolchain version "latest": want numbers separated by dots`},
		"no image name": {targets(image("open vino")), `image "open vino": want a reference, such as registry.example.com/openvino:2026.4, or a digest`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := load(t, c.text)
			if c.want == "" {
				if err != nil {
					t.Fatalf("%s: error %v, want none", c.text, err)
				}
				if got := s.Images()["openvino"]; got != s.Targets[0].Toolchain.Image {
					t.Errorf("image %q, want %q", got, s.Targets[0].Toolchain.Image)
				}
				return
			}
			got := problems(t, err)
			if _, message, _ := strings.Cut(got, " "); message != c.want {
				t.Errorf("got %q, want the one message %q", got, c.want)
			}
		})
	}
}

// A table is no folder of cases: the message says how to make one of it.
func TestTableAsCases(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cases.csv", "cases.parquet", "cases.npz"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, change("cases/", name))
			if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := spec.Load(filepath.Join(dir, spec.File), spec.Options{})
			if got := problems(t, err); !strings.HasPrefix(got, "4:8 "+name+": want ") || strings.Contains(got, "\n") {
				t.Errorf("got %q, want one message at 4:8 that says what to give instead", got)
			}
		})
	}
}

// What a source may have besides its path depends on its format.
func TestKeysOfAFormat(t *testing.T) {
	t.Parallel()
	source := func(keys string) string { return change("source: m.onnx", "source: {path: m.onnx, "+keys+"}") }
	script := func(inputs string) string {
		return source("format: torchscript, trust: {pickle: true}, inputs: [" + inputs + "]")
	}
	for name, c := range map[string]struct{ text, want string }{
		"simplified ONNX":       {source("simplify: true"), ""},
		"simplified weights":    {source("format: tflite, simplify: true"), "simplify is for format onnx: remove the key"},
		"operators of one name": {source("operators: [vocab.txt, sub/vocab.txt]"), `two libraries are called "vocab.txt": want names that differ, since an engine holds all in one folder`},
		"operators":             {source("operators: [vocab.txt, m.onnx]"), ""},
		"operators of others":   {source("format: tflite, operators: [vocab.txt]"), "operators are for format onnx: remove the key"},
		"types of skops":        {source("format: skops, trust: {types: [a.B]}"), ""},
		"types of others":       {source("format: pickle, trust: {types: [a.B]}"), "types are trusted in format skops: remove the key"},
		"trusted pickle":        {source("format: pickle, trust: {pickle: true}"), ""},
		"inputs of others":      {source("format: tflite, inputs: [{name: x, shape: [1]}]"), "inputs are for format torchscript, other files say what theirs are: remove the key"},
		"no inputs":             {source("format: torchscript"), "TorchScript does not say what its inputs are: want inputs: [{name: x, dtype: float32, shape: [batch, 3, 224, 224]}]"},
		"a bad name":            {script("{name: a b, shape: [1]}"), `input name "a b": want letters, digits, '_' and '.', at most 64`},
		"the same name":         {script("{name: a, shape: [1]}, {name: a, shape: [1]}"), `two inputs are called "a": want names that differ`},
		"a bad dtype":           {script("{name: a, dtype: float23, shape: [1]}"), `unknown dtype "float23" (did you mean "float32"?): want float32, float64, float16, int64, int32, int8, uint8, bool`},
		"no size":               {script("{name: a, shape: [0]}"), `found "0": want a size of at least 1, or a name for an open dimension, such as batch`},
		"a negative size":       {script("{name: a, shape: [-1]}"), `found "-1": want a size of at least 1, or a name for an open dimension, such as batch`},
		"half a size":           {script("{name: a, shape: [1.5]}"), `found "1.5": want a size of at least 1, or a name for an open dimension, such as batch`},
		"a bad symbol":          {script("{name: a, shape: [a b]}"), `found "a b": want a size of at least 1, or a name for an open dimension, such as batch`},
		"too many dimensions":   {script("{name: a, shape: [1, 1, 1, 1, 1, 1, 1, 1, 1]}"), "9 dimensions: want at most 8"},
		"pickle of others":      {source("format: skops, trust: {pickle: true}"), "trust in pickles is for formats pickle, torch-export, torchscript: remove the key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, c.text)
			got := ""
			if err != nil {
				_, got, _ = strings.Cut(problems(t, err), " ")
			}
			if got != c.want {
				t.Errorf("%sgot %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func TestReplaceVariantsRefusesWhatIsNoSpec(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"no YAML": "variants: [", "unknown key": small + "varients: [fp32]\n", "a list": "- fp32\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := spec.ReplaceVariants("f.yaml", []byte(text), spec.Variant{Name: "fp32", Precision: "fp32"})
			if registry.CodeOf(err) != registry.CodeInvalid || got != nil || !strings.Contains(err.Error(), "f.yaml") {
				t.Errorf("got %q, error %v; want CodeInvalid that names the file", got, err)
			}
		})
	}
}
