package huggingface_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/formattest"
	"mlpromote.dev/mlpromote/validators/format/huggingface"
)

const bertConfig = `{"architectures": ["BertForSequenceClassification"], "model_type": "bert"}`

// oneWeight is a safetensors file with one number.
func oneWeight() string {
	header := `{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + "\x00\x00\x80\x3f"
}

// manyShards is an index that names as many files as its size allows.
func manyShards() string {
	var text strings.Builder
	text.WriteString(`{"weight_map": {"": "x.safetensors"`)
	for i := 0; text.Len() < 8<<20-64; i++ {
		fmt.Fprintf(&text, `,"%d":"%d.safetensors"`, i, i)
	}
	return text.String() + "}}"
}

// pretrained is an open folder with these files.
func pretrained(t *testing.T, files map[string]string) *os.Root {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		formattest.Write(t, dir, name, []byte(content))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// The files of a model are its configuration, weights and tokenizer, and nothing else that is in its folder.
func TestCheck(t *testing.T) {
	t.Parallel()
	shards := `{"weight_map": {"a": "model-00002-of-00002.safetensors", "b": "model-00001-of-00002.safetensors", "c": "model-00001-of-00002.safetensors"}}`
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"one file of weights": {map[string]string{"config.json": bertConfig, "model.safetensors": oneWeight(), "tokenizer.json": "{}", "vocab.txt": "a", "modeling.py": "x", "pytorch_model.bin": "x"},
			[]string{"config.json", "model.safetensors", "tokenizer.json", "vocab.txt"}},
		"several": {map[string]string{"config.json": bertConfig, "model.safetensors.index.json": shards, "model-00001-of-00002.safetensors": oneWeight(), "model-00002-of-00002.safetensors": oneWeight()},
			[]string{"config.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}},
		"no code": {map[string]string{"config.json": `{"architectures": ["A"], "model_type": "a", "auto_map": null}`, "model.safetensors": oneWeight()},
			[]string{"config.json", "model.safetensors"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := pretrained(t, c.files)
			files, err := huggingface.Check(root, bound.Limits{})
			if err != nil || !slices.Equal(files, c.want) {
				t.Errorf("files %v, error %v; want %v", files, err, c.want)
			}
			if !huggingface.Is(root) {
				t.Error("the folder is not recognized")
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	good := map[string]string{"config.json": bertConfig, "model.safetensors": oneWeight()}
	for name, c := range map[string]struct {
		change map[string]string // files that are otherwise; "-" removes one
		code   registry.Code
		says   string
	}{
		"code of its own": {map[string]string{"config.json": `{"architectures": ["A"], "model_type": "a", "auto_map": {"AutoModel": "modeling.A"}}`}, registry.CodeUnsafe, "auto_map names Python code"},
		"code that a key in capitals hides": {map[string]string{"config.json": `{"architectures": ["A"], "model_type": "a", "auto_map": {"AutoModel": "modeling.A"}, "AUTO_MAP": null}`},
			registry.CodeUnsafe, "auto_map names Python code"},
		"keys in capitals alone": {map[string]string{"config.json": `{"ARCHITECTURES": ["A"], "Model_Type": "a"}`}, registry.CodeInvalid, "architectures with one name"},
		"an index in capitals": {map[string]string{"model.safetensors": "-", "a.safetensors": oneWeight(),
			"model.safetensors.index.json": `{"weight_map": {"a": "../b.safetensors"}, "WEIGHT_MAP": {"a": "a.safetensors"}}`}, registry.CodeUnsafe, `it names "../b.safetensors"`},
		"as many shards as fit": {map[string]string{"model.safetensors": "-", "model.safetensors.index.json": manyShards()}, registry.CodeInvalid, "in more than 1024 files"},
		"weights in a pickle":   {map[string]string{"model.safetensors": "-", "pytorch_model.bin": "x"}, registry.CodeUnsafe, "only in pytorch_model.bin, a pickle"},
		"a pickle by that name": {map[string]string{"model.safetensors": "\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x8c\x06system\x93."}, registry.CodeUnsafe, "pickle"},
		"no weights":            {map[string]string{"model.safetensors": "-"}, registry.CodeInvalid, "neither model.safetensors nor model.safetensors.index.json"},
		"no configuration":      {map[string]string{"config.json": "-"}, registry.CodeInvalid, "config.json cannot be read"},
		"no architecture":       {map[string]string{"config.json": `{"model_type": "bert"}`}, registry.CodeInvalid, "architectures with one name"},
		"two architectures":     {map[string]string{"config.json": `{"model_type": "bert", "architectures": ["A", "B"]}`}, registry.CodeInvalid, "architectures with one name"},
		"no JSON":               {map[string]string{"config.json": `{"model_type"`}, registry.CodeInvalid, "config.json: want a JSON object as save_pretrained of transformers writes it: unexpected end of JSON"},
		"a list":                {map[string]string{"config.json": `[]`}, registry.CodeInvalid, "writes it: it is a list, want an object"},
		"a text for a list":     {map[string]string{"config.json": `{"architectures": "BertModel"}`}, registry.CodeInvalid, "architectures is a text, want a list"},
		"a number for a text":   {map[string]string{"config.json": `{"model_type": 7}`}, registry.CodeInvalid, "model_type is a number, want a text"},
		"a list for an object": {map[string]string{"model.safetensors": "-", "model.safetensors.index.json": `{"weight_map": ["a"]}`}, registry.CodeInvalid,
			"weight_map is a list, want an object"},
		"a shard elsewhere": {map[string]string{"model.safetensors": "-", "model.safetensors.index.json": `{"weight_map": {"a": "../model.safetensors"}}`}, registry.CodeUnsafe, `it names "../model.safetensors"`},
		"a shard of another kind": {map[string]string{"model.safetensors": "-", "model.safetensors.index.json": `{"weight_map": {"a": "a.bin"}}`}, registry.CodeUnsafe,
			`it names "a.bin"`},
		"a shard that is missing": {map[string]string{"model.safetensors": "-", "model.safetensors.index.json": `{"weight_map": {"a": "a.safetensors"}}`}, registry.CodeInvalid,
			"a.safetensors is not there"},
		"more than a limit": {map[string]string{"config.json": bertConfig + strings.Repeat(" ", 8<<20)}, registry.CodeInvalid, "at most 8 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := maps.Clone(good)
			maps.Copy(files, c.change)
			maps.DeleteFunc(files, func(_, content string) bool { return content == "-" })
			_, err := huggingface.Check(pretrained(t, files), bound.Limits{})
			if registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s: %s", err, c.code, c.says)
			}
		})
	}
}

// A link in the folder is no file of the model, wherever it leads.
func TestCheckLink(t *testing.T) {
	t.Parallel()
	root := pretrained(t, map[string]string{"config.json": bertConfig, "model.safetensors": oneWeight(), "words": "a"})
	if err := os.Symlink("words", filepath.Join(root.Name(), "vocab.txt")); err != nil {
		t.Skipf("the file system has no symbolic links: %v", err)
	}
	_, err := huggingface.Check(root, bound.Limits{})
	formattest.WantCode(t, err, registry.CodeUnsafe)
	_, err = huggingface.Check(pretrained(t, map[string]string{"config.json": bertConfig, "model.safetensors": oneWeight()}), bound.Limits{MaxBytes: 90})
	formattest.WantCode(t, err, registry.CodeInvalid)
}
