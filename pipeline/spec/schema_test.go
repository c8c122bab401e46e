package spec_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"mlpromote.dev/mlpromote/pipeline/spec"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	data, err := spec.Schema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	if err := compiler.AddResource(spec.SchemaID, doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile(spec.SchemaID)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// validate judges a spec by the schema alone.
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

func TestSchemaFileIsUpToDate(t *testing.T) {
	t.Parallel()
	want, err := spec.Schema()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "mlpromote.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/reference/mlpromote.schema.json is not what the code says: run go generate ./pipeline/spec")
	}
}

const smallest = `model: vision/resnet50
version: 1.4.0
source: resnet50.onnx
cases: cases/                  # safetensors, npz, or ONNX test_data_set folders; labels optional
targets: [linux/amd64/v3]
variants: [fp32, int8]
`

const designed = `model: text/bert
version: 1.4.0
source: {path: bert.onnx, format: onnx}
shapes: {batch: [1, 8, 32], seq: [16, 128, 512]}
cases: {path: cases/, labels: label, compare: {logits: {where: attention_mask}}}
calibration: {path: calibration/}
assets: [vocab.txt, tokenizer.json]
variants:
  - {name: int8, quantize: {method: static, observer: entropy, per_channel: true}}
targets:
  - {name: x86-v3, os: linux, cpu: {arch: amd64, level: v3}, toolchain: {name: onnxruntime}, required_node_types: [icelake, zen2]}
  - {name: l4, accelerator: {product: NVIDIA-L4}, toolchain: {name: tensorrt, version: "11.4"}, variants: [fp16]}
limits:
  preset: default
  outputs: {logits: {cosine: {min: 0.999}}}
  accuracy: {metric: top1, drop: {max: 0.5%}}
  latency: {p99: {max: 20ms}, regression: {max: 10%}}
`

func TestSchemaAccepts(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	texts := map[string]string{"smallest": smallest, "designed": designed, "small": small, "masked": masked}
	// The YAML reader of this test takes 1e-3 for text; YAML 1.2 and editors do not.
	texts["grown"] = strings.NewReplacer("1e-1", "0.1", "1e-3", "0.001").Replace(grown)
	draft, err := spec.Draft(spec.DraftOptions{Source: "m.onnx"})
	if err != nil {
		t.Fatal(err)
	}
	texts["draft"] = string(draft)
	for _, name := range []string{"digits", "text"} {
		example, err := os.ReadFile(filepath.Join("..", "..", "examples", name, "mlpromote.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(example)
	}
	for name, text := range texts {
		if err := validate(t, schema, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	for _, text := range []string{
		change("variants:", "varients:"),
		change("model:", "modell:"),
		change("version: 1.4.0\n", ""),
		change("1.4.0", "1.4"),
		change("m.onnx", "{path: m.onnx, fromat: onnx}"),
		change("m.onnx", "{path: m.onnx, format: pytorch}"),
		change("cases/", "{labels: l}"),
		change("cases/", "{path: cases/, generate: 4}"),
		change("linux/amd64/v3", "linux/amd64/v5"),
		change("[fp32, int8]", "[]"),
		change("[fp32, int8]", "[fp31]"),
		change("[fp32, int8]", "[{name: int8, quantise: {method: static}}]"),
		change("[fp32, int8]", "[{name: int8, quantize: {method: statik}}]"),
		change("[fp32, int8]", "[bf16]"),
		change("cases/", "{path: cases/, compare: {logits: {}}}"),
		small + "limits: {precisions: {int8: {}}}\n",
		small + "shapes: {batch: [1, 2]}\n",
		small + "limits: {output: {}}\n",
		small + "limits: {latency: {p99: {max: 20}}}\n",
		small + "limits: {accuracy: {metric: top1, drop: {max: half}}}\n",
	} {
		if validate(t, schema, text) == nil {
			t.Errorf("accepted:\n%s", text)
		}
	}
}
