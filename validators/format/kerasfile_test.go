package format_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/formattest"
)

const weights = "\x89HDF\r\n\x1a\n\x00\x00\x00\x00\x00\x08\x08\x00"

// kerasFile is a .keras archive with this configuration, and other entries.
func kerasFile(t testing.TB, config string, more ...string) []byte {
	t.Helper()
	return formattest.Zipped(t, append([]string{"metadata.json", `{"keras_version": "3.15.1"}`, "config.json", config, "model.weights.h5", weights}, more...)...)
}

// inLayers is a configuration with these objects among its layers.
func inLayers(objects ...string) string {
	return `{"module": "keras", "class_name": "Sequential", "config": {"layers": [` + strings.Join(objects, ", ") + `]}, "registered_name": null}`
}

// renamedKeras is an archive whose configuration Python from 3.12 on takes from where Go sees metadata: each
// of the two has the name of the other in the field for names in UTF-8.
func renamedKeras(t testing.TB) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, entry := range [][3]string{
		{"config.json", "metadata.json", inLayers()}, {"metadata.json", "config.json", `{"module": "keras.saving", "class_name": "x"}`}, {"model.weights.h5", "", weights},
	} {
		header := &zip.FileHeader{Name: entry[0]}
		if entry[1] != "" {
			header.Extra = binary.LittleEndian.AppendUint16([]byte{0x75, 0x70}, uint16(5+len(entry[1])))
			header.Extra = binary.LittleEndian.AppendUint32(append(header.Extra, 1), crc32.ChecksumIEEE([]byte(entry[0])))
			header.Extra = append(header.Extra, entry[1]...)
		}
		f, err := w.CreateHeader(header)
		if err == nil {
			_, err = io.WriteString(f, entry[2])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestCheckKeras(t *testing.T) {
	t.Parallel()
	const dense = `{"module": "keras.layers", "class_name": "Dense", "config": {"units": 3, "kernel_initializer": {"module": "keras.initializers", "class_name": "Zeros", "config": {}}}}`
	deep := strings.Repeat("[", 300) + strings.Repeat("]", 300)
	for name, c := range map[string]struct {
		data []byte
		code registry.Code // empty: it passes
		says string
	}{
		"layers":                      {kerasFile(t, inLayers(dense)), "", ""},
		"a value and a function":      {kerasFile(t, inLayers(dense, `{"class_name": "__keras_tensor__", "config": {}}`, `{"module": "builtins", "class_name": "function", "config": "relu"}`)), "", ""},
		"a Lambda layer":              {kerasFile(t, inLayers(`{"module": "keras.layers", "class_name": "Lambda", "config": {}}`)), registry.CodeUnsafe, "a Lambda layer"},
		"a class of another module":   {kerasFile(t, inLayers(`{"module": "os", "class_name": "system", "config": "true"}`)), registry.CodeUnsafe, "the class system of module os"},
		"a class of one's own":        {kerasFile(t, inLayers(`{"module": null, "class_name": "Mine", "registered_name": "mine>Mine"}`)), registry.CodeUnsafe, "the class Mine, which Keras does not have"},
		"a function that fetches":     {kerasFile(t, inLayers(`{"module": "keras.utils", "class_name": "function", "config": "get_file"}`)), registry.CodeUnsafe, "the class function of module keras.utils"},
		"a switch for unsafe layers":  {kerasFile(t, inLayers(`{"module": "keras.config", "class_name": "function", "config": "enable_unsafe_deserialization"}`)), registry.CodeUnsafe, "keras.config"},
		"a function of Python":        {kerasFile(t, inLayers(`{"module": "builtins", "class_name": "function", "config": "exec"}`)), registry.CodeUnsafe, "the function exec"},
		"a layer that loads a file":   {kerasFile(t, inLayers(`{"module": "keras.layers", "class_name": "TFSMLayer", "config": {"filepath": "/x"}}`)), registry.CodeUnsafe, "the class TFSMLayer"},
		"a class in place of a value": {kerasFile(t, inLayers(`{"module": "os", "class_name": "__tensor__"}`)), registry.CodeUnsafe, "module os"},
		"a class that is no text":     {kerasFile(t, inLayers(`{"class_name": ["Lambda"]}`)), registry.CodeUnsafe, "the class"},
		"a function of layers":        {kerasFile(t, inLayers(`{"module": "keras.layers", "class_name": "function", "config": "deserialize"}`)), registry.CodeUnsafe, "the class function of module keras.layers"},
		"a type by another key":       {kerasFile(t, inLayers(`{"module": "keras.layers", "class_name": "__typespec__", "spec_name": "Lambda", "registered_name": null, "config": []}`)), registry.CodeUnsafe, "the class __typespec__"},
		"names for other readers":     {renamedKeras(t), registry.CodeUnsafe, "has another name for some readers"},
		"a name twice":                {kerasFile(t, inLayers(`{"module": "keras.layers", "module": "os", "class_name": "system"}`)), registry.CodeUnsafe, "module os"},
		"values in values":            {kerasFile(t, deep), registry.CodeUnsafe, "nested too deeply"},
		"another file":                {kerasFile(t, inLayers(dense), "assets/words.txt", "x"), registry.CodeUnsafe, "its entries are assets/words.txt"},
		"a second configuration":      {kerasFile(t, inLayers(dense), "config.json", inLayers()), registry.CodeUnsafe, "its entries are"},
		"a pickle":                    {kerasFile(t, inLayers(dense), "assets/words.pkl", "x"), registry.CodeUnsafe, "a zip archive with a Python pickle"},
		"a configuration of no JSON":  {kerasFile(t, "{"), registry.CodeInvalid, "entry config.json"},
		"no weights":                  {formattest.Zipped(t, "config.json", inLayers(dense), "metadata.json", "{}"), registry.CodeInvalid, "expected a .keras archive"},
		"a text":                      {[]byte("hello"), registry.CodeInvalid, "expected a .keras archive"},
		"an archive that is cut":      {kerasFile(t, inLayers(dense))[:200], registry.CodeInvalid, "is cut off or damaged: it begins as a zip archive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := os.Open(formattest.Write(t, t.TempDir(), "m.keras", c.data))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			err = format.CheckKeras(f, bound.Limits{})
			if c.code == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !registry.HasCode(err, c.code) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("error %v (%s), want %s with %q", err, registry.CodeOf(err), c.code, c.says)
			}
		})
	}
}

// FuzzCheckKeras expects an answer for any configuration.
func FuzzCheckKeras(f *testing.F) {
	f.Add(inLayers(`{"module": "keras.layers", "class_name": "Dense", "config": {"units": 3}}`))
	f.Add(`[[{"class_name": {"class_name": 1e400}}]]`)
	f.Fuzz(func(t *testing.T, config string) {
		file, err := os.Open(formattest.Write(t, t.TempDir(), "m.keras", kerasFile(t, config)))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if err := format.CheckKeras(file, bound.Limits{}); err != nil && registry.CodeOf(err) == registry.CodeInternal {
			t.Errorf("%v has no code", err)
		}
	})
}
