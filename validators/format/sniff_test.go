package format_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/formattest"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// compress runs data through one of the standard library's compressors.
func compress(t testing.TB, data []byte, with func(io.Writer) io.WriteCloser) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := with(&buf)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func gz(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
func zl(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }

func TestSniff(t *testing.T) {
	t.Parallel()
	pickle0 := string(formattest.Testdata(t, "protocol0.pkl"))
	pickle4 := string(formattest.Testdata(t, "protocol4.pkl"))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		data string
		want format.Kind
	}{
		{"empty", "", format.Empty},
		{"onnx", string(formattest.Small()), format.ONNX},
		{"onnx cut in its graph", string(formattest.Small()[:30]), format.ONNX},
		{"onnx whose producer is a flatbuffer identifier", string(formattest.Msg{}.Num(1, 8).Str(2, "ORTM").Sub(7, formattest.GraphOf()).Sub(8, formattest.Opset("", 17))), format.ONNX},
		{"savedmodel", string(formattest.Saved(formattest.Msg{}.Str(2, "MatMul"))), format.SavedModel},
		{"savedmodel has no graph", string(formattest.Msg{}.Num(1, 1).Sub(2, formattest.Msg{}.Str(1, "meta"))), format.Unknown},
		{"pickle without header", "(dp0\nS'a'\np1\nI1\ns.", format.Pickle},
		{"pickle of one number", "I42\n.", format.Pickle},
		{"protocol 0 that calls", "cos\nsystem\n(S'true'\ntR and then garbage", format.Pickle},
		{"protocol 0 that instantiates", "(S'true'\nios\nsystem\n.", format.Pickle},
		{"late protocol", "N0\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R!", format.Pickle},
		{"second pickle of a stream", "I1\n." + pickle0, format.Pickle},
		{"legacy torch", "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", format.Pickle},
		{"pickle behind a long string", "X" + "\x00\x00\x10\x00" + strings.Repeat("a", 1<<20) + "0" + pickle0, format.Pickle},
		{"gzip pickle", string(compress(t, []byte(pickle4), gz)), format.Pickle},
		{"zlib pickle", string(compress(t, []byte(pickle4), zl)), format.Pickle},
		{"zlib protocol 0", string(compress(t, []byte(pickle0), zl)), format.Pickle},
		{"old joblib", "ZF0x1f               x\x9c", format.Pickle},
		{"gzip text", string(compress(t, []byte("Because it is a text.\n"), gz)), format.Compressed},
		{"gzip text shorter than it says", string(compress(t, []byte("ChangeLog\n"), gz)), format.Compressed},
		{"gzip of one long line", string(compress(t, []byte("performances = "+strings.Repeat("[1, 2], ", 1<<14)), gz)), format.Compressed},
		{"makefile", "GOOS := $(if $(GOOS),$(GOOS),\nlinux)\n", format.Unknown},
		{"zip that a pickle could be", string(formattest.Zipped(t, "a", "\n.\n.\n.")), format.Zip},
		{"xz cannot be looked into", "\xfd7zXZ\x00\x00\x04", format.Unknown},
		{"torch zip", string(formattest.Zipped(t, "archive/data.pkl", pickle4, "archive/version", "3")), format.PickleZip},
		{"renamed pickle in zip", string(formattest.Zipped(t, "readme.txt", "hello", "data.bin", pickle0)), format.PickleZip},
		{"compressed pickle in zip", string(formattest.Zipped(t, "m", string(compress(t, []byte(pickle4), zl)))), format.PickleZip},
		{"npz of objects", string(formattest.Zipped(t, "a.npy", string(formattest.Testdata(t, "objects.npy")))), format.PickleZip},
		{"npz of floats", string(formattest.Zipped(t, "a.npy", string(formattest.Testdata(t, "floats.npy")))), format.Zip},
		{"skops", string(formattest.Zipped(t, "1.npy", string(formattest.Testdata(t, "floats.npy")), "schema.json", `{"__class__": "Ridge", "_skops_version": "0.16.0"}`)), format.Skops},
		{"skops with a pickle", string(formattest.Zipped(t, "schema.json", `{"__class__": "Ridge", "_skops_version": "0.16.0"}`, "1.npy", pickle0)), format.PickleZip},
		{"zip with another schema", string(formattest.Zipped(t, "schema.json", `{"__class__": "Ridge"}`)), format.Zip},
		{"empty zip", string(formattest.Zipped(t)), format.Zip},
		{"zip behind an onnx model", string(formattest.Small()) + string(formattest.Zipped(t, "data.pkl", pickle4)), format.PickleZip},
		{"zip cut off", string(formattest.Zipped(t, "archive/data.pkl", pickle4)[:60]), format.PickleZip},
		{"objects npy", string(formattest.Testdata(t, "objects.npy")), format.NumpyObject},
		{"floats npy", string(formattest.Testdata(t, "floats.npy")), format.Numpy},
		{"escaped object npy", "\x93NUMPY\x01\x00\x30\x00" + fmt.Sprintf("%-47s\n", `{'descr':'\x7c\x4f','shape':()}`), format.NumpyObject},
		{"safetensors", "\x02\x00\x00\x00\x00\x00\x00\x00{}", format.Safetensors},
		{"safetensors cut off", "\x09\x00\x00\x00\x00\x00\x00\x00{}", format.Unknown},
		{"hdf5", "\x89HDF\r\n\x1a\n\x00", format.HDF5},
		{"hdf5 behind a user block", strings.Repeat("\x00", 1024) + "\x89HDF\r\n\x1a\n\x00", format.HDF5},
		{"gguf", "GGUF\x03\x00\x00\x00", format.GGUF},
		{"xgboost", `{"learner":{"attributes":{}},"version":[3,4,1]}`, format.XGBoost},
		{"xgboost of another writer", "{\n \"version\": [1, 7, 6],\n \"learner\": {}}", format.XGBoost},
		{"xgboost as ubjson", "{L\x00\x00\x00\x00\x00\x00\x00\x07learner{}}", format.XGBoost},
		{"json of a learner", `{"learner": "Ada"}`, format.Unknown},
		{"lightgbm", "tree\nversion=v4\nnum_class=1\n", format.LightGBM},
		{"text about a tree", "tree\nversion of the forest\n", format.Unknown},
		{"pmml", `<?xml version="1.0"?><!-- made --><PMML version="4.4">`, format.PMML},
		{"pmml with a prefix", `<p:PMML xmlns:p="http://www.dmg.org/PMML-4_4" version="4.4">`, format.PMML},
		{"pmml with a declaration", "<!DOCTYPE PMML [<!ENTITY a \"b\">]>\n<PMML>", format.PMML},
		{"xml", `<?xml version="1.0"?><net name="PMML "></net>`, format.Unknown},
		{"tflite", "\x1c\x00\x00\x00TFL3", format.TFLite},
		{"jax", formattest.JAXExport(13, "ML\xefR\x0d"), format.JAXExport},
		{"jax without a program", formattest.JAXExport(12, "ML\xefR\x0d"), format.Unknown},
		{"jax with another program", formattest.JAXExport(13, "ML\xefX\x0d"), format.Unknown},
		{"jax cut off", formattest.JAXExport(13, "ML\xef"), format.Unknown},
		{"ort", "\x18\x00\x00\x00ORTM", format.ORT},
		{"tensorrt", "ptrt\x00\x00\x00\x00", format.TensorRT},
		{"tensorrt, other magic", "ftrt\x00\x00\x00\x00", format.TensorRT},
		{"this test", string(binary), format.NativeObject},
		{"pe", "MZ" + strings.Repeat("\x00", 58) + "\x40\x00\x00\x00PE\x00\x00", format.NativeObject},
		{"json", `{"a": [1, 2, 3]}`, format.Unknown},
		{"words that begin like an import", "cat\ndog\nbird\n", format.Unknown},
		{"text that begins like a pickle", "N.B. this is a text.\n", format.Unknown},
		{"one byte", "\x80", format.Unknown},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := sniff([]byte(tc.data)); got != tc.want {
				t.Errorf("Sniff = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestSniffTexts has beginnings for every letter that is an opcode.
func TestSniffTexts(t *testing.T) {
	t.Parallel()
	for c := byte(' '); c < 0x7f; c++ {
		text := fmt.Sprintf("%cagle and fox\n%carrot 12\nthe quick brown fox (or dog) jumps.\n", c, c)
		if got := sniff([]byte(text)); got != format.Unknown {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func TestSniffEveryProtocol(t *testing.T) {
	t.Parallel()
	for protocol := range 6 {
		data := formattest.Testdata(t, fmt.Sprintf("protocol%d.pkl", protocol))
		if got := sniff(data); got != format.Pickle {
			t.Errorf("protocol %d: Sniff = %v, want pickle", protocol, got)
		}
	}
}

// broken fails beyond its first bytes, as a disk does.
type broken struct{ good []byte }

func (b broken) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) <= int64(len(b.good)) {
		return copy(p, b.good[off:]), nil
	}
	return 0, errors.New("disk on fire")
}

func TestSniffUnreadable(t *testing.T) {
	t.Parallel()
	if got := format.Sniff(broken{}, 100); got != format.Unknown {
		t.Errorf("Sniff = %v, want unknown", got)
	}
	_, err := onnx.Read(broken{}, 100, bound.Limits{})
	if err == nil || !strings.Contains(err.Error(), "disk on fire") {
		t.Errorf("ReadONNX of a broken disk: %v", err)
	}
}

func TestKind(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for k := format.Unknown; k <= format.NativeObject; k++ {
		if seen[k.String()] || k.Describe() == "" {
			t.Errorf("kind %d has no name or description of its own: %q", int(k), k)
		}
		seen[k.String()] = true
	}
	if got := format.Kind(-1).String() + format.Kind(99).String(); got != "unknownunknown" {
		t.Errorf("kinds out of range are called %q", got)
	}
	if format.ONNX.CarriesCode() || !format.Pickle.CarriesCode() || !format.TensorRT.CarriesCode() {
		t.Error("the wrong kinds carry code")
	}
}

func sniff(data []byte) format.Kind { return format.Sniff(bytes.NewReader(data), int64(len(data))) }

// Beginnings that are just long enough, and one byte too short, for what recognises them.
func TestSniffBoundaries(t *testing.T) {
	t.Parallel()
	pe := func(at byte, rest string) string {
		return "MZ" + strings.Repeat("\x00", 58) + string([]byte{at, 0, 0, 0}) + rest
	}
	for name, c := range map[string]struct {
		data string
		want format.Kind
	}{
		"an ELF magic alone":               {"\x7fELF", format.NativeObject},
		"three of its bytes":               {"\x7fEL", format.Unknown},
		"a PE header behind a gap":         {pe(0x44, "\x00\x00\x00\x00PE\x00\x00"), format.NativeObject},
		"a PE header that is cut":          {pe(0x40, "PE\x00"), format.Unknown},
		"MZ in a text":                     {"MZ" + strings.Repeat("a", 70), format.Unknown},
		"a flatbuffer identifier alone":    {"\x1c\x00\x00\x00TFL3", format.TFLite},
		"a flatbuffer identifier, cut":     {"\x1c\x00\x00\x00TFL", format.Unknown},
		"the shortest safetensors":         {"\x02\x00\x00\x00\x00\x00\x00\x00{}", format.Safetensors},
		"a header too short for an object": {"\x01\x00\x00\x00\x00\x00\x00\x00{}", format.Unknown},
		"a header that is no object":       {"\x02\x00\x00\x00\x00\x00\x00\x00[]", format.Unknown},
		"HDF5 that is cut":                 {"\x89HDF\r\n\x1a", format.Unknown},
		"HDF5 behind 512 bytes":            {strings.Repeat("\x00", 512) + "\x89HDF\r\n\x1a\n", format.HDF5},
		"HDF5 behind 511 bytes":            {strings.Repeat("\x00", 511) + "\x89HDF\r\n\x1a\n", format.Unknown},
		"the header of a pickle alone":     {"\x80\x05", format.Pickle},
		"a protocol that there is not":     {"\x80\x06", format.Unknown},
		"numpy of version 2":               {"\x93NUMPY\x02\x00\x02\x00\x00\x00{}", format.Numpy},
		"numpy of version 3":               {"\x93NUMPY\x03\x00\x02\x00\x00\x00{}", format.Numpy},
		"numpy of version 4":               {"\x93NUMPY\x04\x00\x02\x00\x00\x00{}", format.NumpyObject},
		"numpy whose header is cut":        {"\x93NUMPY\x01\x00\x03\x00{}", format.NumpyObject},
		"numpy without a header":           {"\x93NUMPY\x01\x00", format.NumpyObject},
		"numpy that says object":           {"\x93NUMPY\x01\x00\x08\x00{'obj':1}", format.NumpyObject},
		"numpy with an escape":             {"\x93NUMPY\x01\x00\x06\x00{'\\x':", format.NumpyObject},
		"a folder in an archive":           {string(formattest.Zipped(t, "a/", "", "a/b", "text")), format.Zip},
		"a flatbuffer that begins as zlib": {"\x78\x9c\xff\xffTFL3", format.TFLite},
		"an empty archive behind bytes":    {"some text " + string(formattest.Zipped(t)), format.Unknown},
		"an archive behind bytes":          {"some text " + string(formattest.Zipped(t, "a", "text")), format.Zip},
		"an archive that is encrypted":     {encrypted(t), format.Unknown},
		"a call after an import":           {"cos\nsystem\n)R text", format.Pickle},
		"a call without an import":         {"N)R text", format.Unknown},
		"a state without an import":        {"N}b text", format.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := sniff([]byte(c.data)); got != c.want {
				t.Errorf("Sniff = %v, want %v", got, c.want)
			}
		})
	}
}

// encrypted is an archive whose only entry says that it is encrypted.
func encrypted(t *testing.T) string {
	t.Helper()
	data := formattest.Zipped(t, "a", "text")
	data[6] |= 1                                         // local header
	data[bytes.Index(data, []byte("PK\x01\x02"))+8] |= 1 // directory
	return string(data)
}

// A SavedModel has one version, and graphs of it.
func TestSniffSavedModel(t *testing.T) {
	t.Parallel()
	graph := formattest.Msg{}.Sub(2, formattest.Msg{}.Sub(2, formattest.Msg{}.Sub(1, formattest.Msg{}.Str(2, "Add"))))
	for name, c := range map[string]struct {
		data formattest.Msg
		want format.Kind
	}{
		"version and graph":   {append(formattest.Msg{}.Num(1, 1), graph...), format.SavedModel},
		"no version":          {graph, format.Unknown},
		"another version":     {append(formattest.Msg{}.Num(1, 2), graph...), format.Unknown},
		"no graph":            {formattest.Msg{}.Num(1, 1).Sub(2, formattest.Msg{}.Str(1, "meta")), format.Unknown},
		"something else too":  {append(append(formattest.Msg{}.Num(1, 1), graph...), formattest.Msg{}.Num(3, 1)...), format.Unknown},
		"a graph that is cut": {append(formattest.Msg{}.Num(1, 1), graph...)[:10], format.Unknown},
	} {
		if got := sniff(c.data); got != c.want {
			t.Errorf("%s: Sniff = %v, want %v", name, got, c.want)
		}
	}
}
