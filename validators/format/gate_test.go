package format_test

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/formattest"
)

// gate takes bytes through a gate.
func gate(native bool, data []byte) error {
	return format.Gate{NativeCode: native}.Check("models/it", bytes.NewReader(data), int64(len(data)))
}

// honestGGUF is a small model with a value of every type.
func honestGGUF() []byte {
	u32 := func(b []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(b, v) }
	u64 := func(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }
	text := func(b []byte, s string) []byte { return append(u64(b, uint64(len(s))), s...) }
	b := u64(u64(u32([]byte("GGUF"), 3), 1), 4)
	b = text(u32(text(b, "general.architecture"), 8), "llama")
	b = u32(u32(text(b, "general.alignment"), 4), 32)
	b = text(text(u64(u32(u32(text(b, "tokenizer.ggml.tokens"), 9), 8), 2), "<s>"), "</s>")
	b = append(u64(u32(u32(text(b, "tokenizer.ggml.token_type"), 9), 1), 2), 1, 2)
	b = u64(u64(u32(text(b, "token_embd.weight"), 2), 4), 2)
	return append(u64(u32(b, 0), 0), make([]byte, 64)...)
}

// Honest files of each format pass.
func TestGatePasses(t *testing.T) {
	t.Parallel()
	floats := string(formattest.Testdata(t, "floats.npy"))
	for name, data := range map[string][]byte{
		"empty":                        {},
		"onnx":                         formattest.Small(),
		"npy":                          []byte(floats),
		"npz":                          formattest.Zipped(t, "a.npy", floats, "b.npy", floats),
		"npz of zeros":                 formattest.Zipped(t, "a.npy", floats+strings.Repeat("\x00", 20<<20)),
		"zip with an empty folder":     renamed(stored(t, "a_", "", "a_b", "text"), "a_", "a/"),
		"zip behind text":              append([]byte("some text "), formattest.Zipped(t, "a", "text")...),
		"zip with a folder of Java":    folderOfJava(t),
		"safetensors":                  []byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"),
		"gguf":                         honestGGUF(),
		"tflite":                       []byte("\x1c\x00\x00\x00TFL3"),
		"tflite with labels behind it": append([]byte("\x1c\x00\x00\x00TFL3\x00\x00"), stored(t, "labels.txt", "cat\ndog\n")...),
		"ort":                          []byte("\x18\x00\x00\x00ORTM"),
		"tokenizer":                    []byte(`{"version": "1.0", "model": {"type": "WordPiece", "vocab": {"Lambda": 1, "class_name": 2}}}`),
		"architecture of Keras":        []byte(`{"class_name": "Sequential", "config": {"layers": [{"class_name": "Dense", "config": {}}]}}`),
		"labels with NaN":              []byte(`{"labels": ["Lambda", "class_name"], "means": [NaN, -Infinity]}`),
		"configuration with NaN":       formattest.Zipped(t, "config.json", `{"model_type": "bert", "eps": NaN, "name": "class_name", "Lambda": "a"}`),
		"braces":                       []byte("{{ class_name }} is \"Lambda\n"),
		"much JSON in a zip":           formattest.Zipped(t, "vocab.json", `{"a": "`+strings.Repeat("a", 17<<20)+`"}`),
		"OpenVINO":                     []byte(`<?xml version="1.0"?><net name="m" version="11"></net>`),
		"weights that lzma could be":   []byte("\x5d\x00\x00\x00\x00\x00\x00\x00\x5d\x00\x00\x00\x00\x00\x00\x00"),
		"compressed text":              compress(t, []byte("Because it is a text.\n"), gz),
		"bzip2 with text behind it":    append(unhex(t, "425a6839314159265359fe1ea00200000355800010400110002a200e40200022134794fd4410340d0a2ced262635179af6f0f8bb9229c28487f0f50010"), "no"...),
		"gzip with zeros behind it":    append(compress(t, []byte("Because it is a text.\n"), gz), make([]byte, 100)...),
		"compressed weights":           compress(t, make([]byte, 40<<20), gz),
		"tar":                          tarred(t, "a/labels.txt", "cat\n", "./b.npy", floats),
		"tar of git": tarWith(t,
			[]tar.Header{{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "9574d27"}},
				{Name: "a", Typeflag: tar.TypeReg, Size: 4}}, []string{"", "text"}),
		"compressed tar":           compress(t, tarred(t, "labels.txt", "cat\n", "b.npy", floats), gz),
		"zip in a tar in a stream": compress(t, tarred(t, "a.zip", string(formattest.Zipped(t, "labels.txt", "cat\n"))), gz),
	} {
		if err := gate(false, data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What lies in the folders of this repository passes, unless it is there to be refused.
func TestGatePassesModelsOfTheRepository(t *testing.T) {
	t.Parallel()
	refused := []string{".pkl", ".joblib", ".pt", ".pt2", ".h5", ".keras", ".skops", ".so"}
	seen := map[string]int{}
	for _, dir := range []string{"../../examples", "../../pipeline", "../../docs", "testdata", "onnx/testdata", "../tensor", "../../cmd/mlpromote/testdata"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			ext := filepath.Ext(path)
			if err != nil || !d.Type().IsRegular() || slices.Contains(refused, ext) || strings.Contains(path, "fuzz/") ||
				strings.Contains(path, "examples/bad/") || filepath.Base(path) == "object.npy" ||
				filepath.Base(path) == "objects.npy" || filepath.Base(path) == "saved_model.pb" {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			seen[ext]++
			g := format.Gate{Beside: func(name string) (int64, bool) {
				info, err := os.Lstat(name)
				return max(0, sizeOf(info)), err == nil
			}}
			if err := g.CheckFile(f); err != nil {
				t.Error(err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, ext := range []string{".onnx", ".npy", ".md", ".txtar", ".yaml"} {
		if seen[ext] == 0 {
			t.Errorf("no %s was looked at: %v", ext, seen)
		}
	}
}

func sizeOf(info fs.FileInfo) int64 {
	if info == nil {
		return -1
	}
	return info.Size()
}

// The external data of a model has to be among the files beside it.
func TestGateExternalData(t *testing.T) {
	t.Parallel()
	model := formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(5, formattest.External("w.bin", "", ""))))
	for name, c := range map[string]struct {
		beside map[string]int64
		code   registry.Code
	}{
		"beside it": {map[string]int64{"models/w.bin": 8}, ""},
		"elsewhere": {map[string]int64{"w.bin": 8}, registry.CodeInvalid},
		"too short": {map[string]int64{"models/w.bin": 7}, registry.CodeInvalid},
		"missing":   {nil, registry.CodeInvalid},
	} {
		g := format.Gate{Beside: func(file string) (int64, bool) { n, ok := c.beside[file]; return n, ok }}
		err := g.Check("models/it.onnx", bytes.NewReader(model), int64(len(model)))
		if registry.CodeOf(err) != c.code && (err != nil || c.code != "") {
			t.Errorf("%s: error %v, want code %q", name, err, c.code)
		}
	}
}

// A file whose disk breaks is not let in.
func TestGateUnreadable(t *testing.T) {
	t.Parallel()
	if err := (format.Gate{}).Check("it", broken{}, 100); err == nil || !strings.Contains(err.Error(), "disk on fire") {
		t.Errorf("error %v, want that of the disk", err)
	}
}

// padded is a file of zeros behind its beginning.
type padded []byte

func (b padded) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < int64(len(b)) {
		copy(p, b[off:])
	}
	return len(p), nil
}

// A stream that goes on behind what is read of it is refused, not cut; one that has ended there passes.
func TestGateLongStreams(t *testing.T) {
	t.Parallel()
	text := compress(t, []byte("Because it is a text.\n"), gz)
	for name, c := range map[string]struct {
		begins []byte
		says   string
	}{
		"zeros, behind which the next member could be": {text, "cannot be looked into, because it is too long"},
		"a stream of other bytes ends":                 {append(bytes.Clone(text), "no"...), ""},
	} {
		err := format.Gate{}.Check("it", padded(c.begins), 1<<29+1000)
		if c.says == "" && err != nil || c.says != "" && (!registry.HasCode(err, registry.CodeUnsafe) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error %v, want %q", name, err, c.says)
		}
	}
}
