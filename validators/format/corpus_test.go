package format_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/formattest"
)

// call is a pickle of protocol 0 that runs a program.
const call = "cos\nsystem\n(S'true'\ntR."

// hostile is a file of the corpus, and what its refusal has to say.
type hostile struct {
	name string
	data []byte
	says string
}

// corpus makes one file of each kind that runs code, hides something or harms its readers.
func corpus(t testing.TB) []hostile {
	t.Helper()
	all := pickles(t)
	all = append(all, containers(t)...)
	all = append(all, programs(t)...)
	all = append(all, bombs(t)...)
	all = append(all, travelers(t)...)
	all = append(all, evasions(t)...)
	return append(all, headers()...)
}

// pickles are those that programs of machine learning write.
func pickles(t testing.TB) []hostile {
	long4 := func(op string, s string) string {
		return op + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
	}
	const runs = "a Python pickle"
	all := []hostile{
		{"protocol 1", []byte("(cos\nsystem\nq\x00" + long4("T", "true") + "o."), runs},
		{"protocol 2", []byte("\x80\x02cos\nsystem\n" + long4("X", "true") + "\x85R."), runs},
		{"protocol 4", []byte("\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R."), runs},
		{"protocol 5", []byte("\x80\x05\x95\x1e\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R."), runs},
		{"protocol 0", []byte(call), runs},
		{"no call in it", []byte("\x80\x02}q\x00."), runs},
		{"without a header", []byte("}q\x00(X\x01\x00\x00\x00aK\x01u."), runs},
		{"cut short", []byte(call[:len(call)-1]), runs},
		{"joblib with gzip", compress(t, []byte(call), gz), "compressed by gzip"},
		{"joblib with zlib", compress(t, []byte(call), zl), "compressed by zlib"},
		{"joblib with bz2", unhex(t, "425a68393141592653597fb85d2a000004d380001000c118000a029e202000314c0001464365368825c8e040d3c4b2b384adbe2ee48a70a120ff70ba54"), "compressed by bzip2"},
		{"joblib with xz", []byte("\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4\x46"), "cannot be looked into"},
		{"joblib with lzma", []byte("\x5d\x00\x00\x80\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00\x31\x9b"), "cannot be looked into"},
		{"joblib with lz4", []byte("\x04\x22\x4d\x18\x64\x40\xa7"), "cannot be looked into"},
		{"zstandard", []byte("\x28\xb5\x2f\xfd\x04\x58\x41"), "cannot be looked into"},
		{"joblib before 0.10", []byte("ZF0x1f               x\x9c"), "compressed by joblib"},
		{"legacy torch", []byte("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03."), runs},
		{"array of objects", npyOf(1, "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", call), "array of Python objects"},
		{"array of objects, version 2", npyOf(2, "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", call), "array of Python objects"},
		{"structured array of objects", npyOf(3, "{'descr': [('a', '<f4'), ('b', 'O')], 'fortran_order': False, 'shape': (1,), }", call), "array of Python objects"},
	}
	return all
}

// npyOf is an npy file of a version of the format.
func npyOf(version byte, header, data string) []byte {
	out := []byte{0x93, 'N', 'U', 'M', 'P', 'Y', version, 0}
	if version == 1 {
		out = binary.LittleEndian.AppendUint16(out, uint16(len(header)))
	} else {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(header)))
	}
	return append(append(out, header...), data...)
}

// containers wrap a pickle.
func containers(t testing.TB) []hostile {
	objects := string(npyOf(1, "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", call))
	torch := string(formattest.Zipped(t, "archive/data.pkl", "\x80\x02}q\x00.", "archive/data/0", "weights", "archive/version", "3\n"))
	script := formattest.Zipped(t, "m/code/__torch__.py", "class M(Module): ...", "m/constants.pkl", "\x80\x02).", "m/data.pkl", "\x80\x02}.")
	hidden := string(formattest.Zipped(t, "weights", call))
	nemo := tarred(t, "./model_config.yaml", "target: nemo", "./model_weights.ckpt", torch)
	deep := call
	for range 6 {
		deep = string(formattest.Zipped(t, "inner.zip", deep))
	}
	return []hostile{
		{"torch", []byte(torch), `entry "archive/data.pkl"`},
		{"TorchScript", script, `entry "m/constants.pkl"`},
		{"torch, damaged", []byte(torch[:70]), "of a damaged archive"},
		{"npz of objects", formattest.Zipped(t, "a.npy", objects), `entry "a.npy"`},
		{"npz of objects, stored", stored(t, "a.npy", objects), `entry "a.npy"`},
		{"pickle by another name in a zip", []byte(hidden), `entry "weights"`},
		{"compressed pickle in a zip", formattest.Zipped(t, "weights", string(compress(t, []byte(call), gz))), `entry "weights", compressed by gzip`},
		{"torch export with a torch file in it", formattest.Zipped(t, "data/weights/model.pt", torch), `entry "data/weights/model.pt", entry "archive/data.pkl"`},
		{"torch file stored in a zip", stored(t, "model.bin", torch), `entry "model.bin", entry "archive/data.pkl"`},
		{"nemo", nemo, `entry "./model_weights.ckpt", entry "archive/data.pkl"`},
		{"nemo, compressed", compress(t, nemo, gz), `compressed by gzip, entry "./model_weights.ckpt", entry "archive/data.pkl"`},
		{"old torch", tarred(t, "sys_info", "\x80\x02}.", "pickle", "\x80\x02}."), "a tar archive with a Python pickle in it"},
		{"pickle in a zip in a tar", tarred(t, "a.zip", hidden), `entry "a.zip", entry "weights"`},
		{"pickle in a zip in a compressed tar", compress(t, tarred(t, "a.zip", hidden), gz), `compressed by gzip, entry "a.zip", entry "weights"`},
		{"pickle in a stream in a tar in a zip", formattest.Zipped(t, "a.tar", string(tarred(t, "b", string(compress(t, []byte(call), zl))))), `entry "a.tar", entry "b", compressed by zlib`},
		{"pickle in too many zips", []byte(deep), "inside more than 4 others"},
		{"zip behind a model", append([]byte(formattest.Small()), torch...), `entry "archive/data.pkl"`},
		{"encrypted entry", flagged(formattest.Zipped(t, "weights", "secret")), "entry is encrypted"},
		{"unknown compression", method(formattest.Zipped(t, "weights", "secret"), 93), `entry "weights" that cannot be looked into`},
	}
}

// programs are code other than pickles.
func programs(t testing.TB) []hostile {
	lambda := `{"module": "keras", "class_name": "Functional", "config": {"layers": [{"class_name": "Lambda", "config": {"function": "4wEAAAA="}}]}}`
	function := `{"class_name": "Sequential", "config": {"layers": [{"class_name": "Dense", "config": {"activation": {"class_name": "__lambda__", "config": {"code": "4wE="}}}}]}}`
	const hdf5 = "\x89HDF\r\n\x1a\n\x00\x00\x00\x00\x00\x08\x08\x00"
	const elf = "\x7fELF\x02\x01\x01\x00"
	return []hostile{
		{"Keras with a Lambda layer", formattest.Zipped(t, "metadata.json", `{"keras_version": "3.5.0"}`, "config.json", lambda, "model.weights.h5", hdf5), `entry "config.json", a Lambda layer`},
		{"Keras with a lambda function", formattest.Zipped(t, "config.json", function), "a lambda function as Python bytecode"},
		{"Keras without", formattest.Zipped(t, "config.json", `{"class_name": "Functional"}`, "model.weights.h5", hdf5), `entry "model.weights.h5": an HDF5 file`},
		{"architecture of Keras", []byte(" \n" + lambda), "a Lambda layer, with Python bytecode as function"},
		{"HDF5 of weights", []byte(hdf5), "an HDF5 file"},
		{"HDF5 with a Lambda layer", []byte(hdf5 + `model_config` + strings.ReplaceAll(lambda, "Functional", "Model")), "its model_config has a Lambda layer"},
		{"HDF5 with a link to another file", []byte(hdf5 + "\x00/etc/passwd\x00/dataset"), "an HDF5 file"},
		{"HDF5 behind a block of the user", append(make([]byte, 512), hdf5...), "an HDF5 file"},
		{"SavedModel", formattest.Saved(formattest.Msg{}.Str(2, "ReadFile")), "the graph of a TensorFlow SavedModel"},
		{"skops", formattest.Zipped(t, "schema.json", `{"__class__": "Ridge", "_skops_version": "0.16.0"}`), "a skops archive"},
		{"library", []byte(elf), "labelled native-code"},
		{"library of a Mac", []byte("\xcf\xfa\xed\xfe\x07\x00\x00\x01"), "labelled native-code"},
		{"static library", []byte("!<arch>\n//"), "labelled native-code"},
		{"LLVM bitcode", []byte("BC\xc0\xde\x35\x14"), "labelled native-code"},
		{"GPU code", []byte("\x50\xed\x55\xba\x01\x00"), "labelled native-code"},
		{"TensorRT plan", []byte("ptrt\x00\x00\x00\x00"), "labelled native-code"},
		{"IREE module", []byte("\x18\x00\x00\x00IREE\x00\x00"), "labelled native-code"},
		{"package with a library", formattest.Zipped(t, "model/data/aotinductor/model.so", elf), `entry "model/data/aotinductor/model.so": an executable or shared object`},
		{"library in a tar", tarred(t, "lib.so", elf), `entry "lib.so"`},
	}
}

// bombs cost their readers more than they are.
func bombs(t testing.TB) []hostile {
	zeros := compress(t, make([]byte, 16<<20), gz)
	claims := func(size uint32) []byte { return sized(formattest.Zipped(t, "a", "a"), size) }
	many := make([]string, 0, 2*5000)
	for i := range 5000 {
		many = append(many, fmt.Sprint(i), "")
	}
	return []hostile{
		{"zip that claims gigabytes", claims(3 << 30), "(a zip bomb?)"},
		{"zip with overlapping entries", overlapping(), "entries that overlap (a zip bomb?)"},
		{"zip of very many entries", formattest.Zipped(t, many...), "5000 entries, more than can be looked into"},
		{"stream that expands too much", bytes.Repeat(zeros, 33), "it expands too much"},
		{"stream in a zip that expands too much", stored(t, "a", string(bytes.Repeat(zeros, 33))), "it expands too much"},
		{"two streams that expand too much together", stored(t, "a", string(bytes.Repeat(zeros, 17)), "b", string(bytes.Repeat(zeros, 17))), "it expands too much"},
	}
}

// travelers would be written outside the folder that they are unpacked into.
func travelers(t testing.TB) []hostile {
	linked := func(kind byte) []byte {
		return tarOf(t, tar.Header{Name: "a", Typeflag: kind, Linkname: "/etc/passwd"})
	}
	all := []hostile{
		{"zip with a link", zipOf(t, "a", 0o777|1<<27, "/etc/passwd"), "is a link"},
		{"tar with a symbolic link", linked(tar.TypeSymlink), "is a link"},
		{"tar with a hard link", linked(tar.TypeLink), "is a link"},
		{"tar with a device", linked(tar.TypeChar), "is neither a file nor a folder"},
		{"tar with a pipe", linked(tar.TypeFifo), "is neither a file nor a folder"},
		{"model with data elsewhere", formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(5, formattest.External("../../etc/passwd", "", "")))), "outside the model's folder"},
		{"model with data at the root", formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(5, formattest.External("/etc/passwd", "", "")))), "outside the model's folder"},
	}
	for _, name := range []string{"../a", "a/../../b", "/etc/passwd", `..\a`, "C:/a"} {
		all = append(all,
			hostile{"zip with " + name, formattest.Zipped(t, name, "x"), "would be written outside its folder"},
			hostile{"tar with " + name, tarred(t, name, "x"), "would be written outside its folder"})
	}
	return all
}

// headers claim more than any reader should make room for.
func headers() []hostile {
	u32 := func(b []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(b, v) }
	u64 := func(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }
	// A model of XGBoost up to the value of its first attribute.
	const ubj = "{L\x00\x00\x00\x00\x00\x00\x00\x07learner{i\x01a"
	gguf := func(tensors, keys uint64) []byte { return u64(u64(u32([]byte("GGUF"), 3), tensors), keys) }
	key := func(b []byte, kind uint32) []byte { return u32(append(u64(b, 1), 'k'), kind) }
	return []hostile{
		{"safetensors", append(u64(nil, 1<<40), `{"a":`...), "header says that it has 1099511627776 bytes"},
		{"safetensors, largest", append(u64(nil, 1<<64-1), `{"a":`...), "header says"},
		{"npy", npyOf(2, strings.Repeat(" ", 5000), ""), "longer than 4096 bytes"},
		{"npy, largest", []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff{"), "longer than 4096 bytes"},
		{"GGUF of too many tensors", gguf(1<<60, 0), "1152921504606846976 tensors"},
		{"GGUF of too many keys", gguf(0, 1<<60), "1152921504606846976 keys"},
		{"GGUF with a long key", u64(gguf(0, 1), 1<<40), "bytes of a key"},
		{"GGUF with a long text", u64(key(gguf(0, 1), 8), 1<<40), "bytes of a text"},
		{"GGUF with a long array", u64(u32(key(gguf(0, 1), 9), 4), 1<<40), "items of an array"},
		{"GGUF with an array beyond its end", u64(u32(key(gguf(0, 1), 9), 4), 1<<20), "bytes are missing"},
		{"GGUF with a type of its own", key(gguf(0, 1), 99), "a value of type 99"},
		{"XGBoost nested deep", []byte(`{"learner":{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}}"), "nested more than 32 deep"},
		{"UBJSON nested deep", []byte(ubj + strings.Repeat("[", 40)), "nested more than 32 deep"},
		{"UBJSON of a long text", []byte(ubj + "SL\x00\x00\x01\x00\x00\x00\x00\x00"), "1099511627776 items follow"},
		{"UBJSON of a long list", []byte(ubj + "[$d#L\x7f\xff\xff\xff\xff\xff\xff\xff"), "items follow"},
		{"UBJSON with a negative length", []byte(ubj + "SL\xff\xff\xff\xff\xff\xff\xff\xff"), "items follow"},
		{"UBJSON with a type of its own", []byte(ubj + "?"), "a value of type '?'"},
		{"UBJSON without a number of items", []byte(ubj + "[$d]"), "a type of items without their number"},
		{"PMML with entities", []byte(`<!DOCTYPE PMML [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><PMML>&b;</PMML>`), "has a declaration"},
		{"PMML with a declaration inside", []byte(`<PMML><!ENTITY a SYSTEM "file:///etc/passwd"></PMML>`), "has a declaration"},
		{"PMML nested deep", []byte(`<PMML>` + strings.Repeat("<a>", 600) + strings.Repeat("</a>", 600) + `</PMML>`), "nested more than 512 deep"},
		{"GGUF with arrays in arrays", nestedArrays(key(gguf(0, 1), 9), 6), "nested more than 4 deep"},
		{"GGUF of too many dimensions", u32(append(u64(gguf(1, 0), 1), 'w'), 1<<30), "1073741824 dimensions"},
		{"GGUF with a tensor elsewhere", u64(u32(u32(append(u64(gguf(1, 0), 1), 'w'), 0), 0), 1<<50), "a tensor at byte"},
		{"GGUF of another version", u64(u64(u32([]byte("GGUF"), 77), 0), 0), "its version is 77"},
		{"GGUF that ends", []byte("GGUF\x03\x00\x00\x00"), "it ends in its header"},
	}
}

func nestedArrays(b []byte, depth int) []byte {
	for range depth {
		b = binary.LittleEndian.AppendUint32(b, 9)
		b = binary.LittleEndian.AppendUint64(b, 1)
	}
	return b
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	data, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// tarred makes an archive of files, name and content in turn.
func tarred(t testing.TB, entries ...string) []byte {
	t.Helper()
	var headers []tar.Header
	var bodies []string
	for i := 0; i < len(entries); i += 2 {
		headers = append(headers, tar.Header{Name: entries[i], Mode: 0o644, Size: int64(len(entries[i+1])), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR})
		bodies = append(bodies, entries[i+1])
	}
	return tarWith(t, headers, bodies)
}

func tarOf(t testing.TB, h tar.Header) []byte {
	t.Helper()
	return tarWith(t, []tar.Header{h}, []string{""})
}

func tarWith(t testing.TB, headers []tar.Header, bodies []string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for i, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(bodies[i])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// stored is zipped without compression.
func stored(t testing.TB, entries ...string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for i := 0; i < len(entries); i += 2 {
		f, err := w.CreateHeader(&zip.FileHeader{Name: entries[i], Method: zip.Store})
		if err == nil {
			_, err = f.Write([]byte(entries[i+1]))
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

// zipOf makes an archive of one entry with a mode of Unix.
func zipOf(t testing.TB, name string, mode uint32, body string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	h := &zip.FileHeader{Name: name, CreatorVersion: 3 << 8, ExternalAttrs: (0o120000 | mode&0o777) << 16}
	f, err := w.CreateHeader(h)
	if err == nil {
		_, err = f.Write([]byte(body))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// central is where the only entry of an archive stands in its directory (APPNOTE.TXT, 4.3.12).
func central(archive []byte) int { return bytes.Index(archive, []byte("PK\x01\x02")) }

func flagged(archive []byte) []byte {
	archive[central(archive)+8] |= 1
	return archive
}

func method(archive []byte, m uint16) []byte {
	binary.LittleEndian.PutUint16(archive[central(archive)+10:], m)
	return archive
}

func sized(archive []byte, size uint32) []byte {
	binary.LittleEndian.PutUint32(archive[central(archive)+24:], size)
	return archive
}

// overlapping is an archive whose two entries are the same bytes.
func overlapping() []byte {
	const body = "bytes that two entries share"
	sum := crc32.ChecksumIEEE([]byte(body))
	fields := func(b []byte) []byte { // of both headers, from the method to the lengths
		b = append(b, 0, 0, 0, 0, 0, 0)
		b = binary.LittleEndian.AppendUint32(b, sum)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
		return append(b, 1, 0, 0, 0)
	}
	data := append(fields([]byte("PK\x03\x04\x14\x00\x00\x00")), "a"+body...)
	at := uint32(len(data))
	for _, name := range []string{"a", "b"} {
		data = append(fields(append(data, "PK\x01\x02\x14\x00\x14\x00\x00\x00"...)), make([]byte, 14)...)
		data = append(data, name...)
	}
	size := uint32(len(data)) - at
	data = append(data, "PK\x05\x06\x00\x00\x00\x00\x02\x00\x02\x00"...)
	data = binary.LittleEndian.AppendUint32(data, size)
	data = binary.LittleEndian.AppendUint32(data, at)
	return append(data, 0, 0)
}

// Every file of the corpus is refused, with the place and what to do, also in engines that are
// labelled as native code unless that is all that was wrong.
func TestGateRefusesTheCorpus(t *testing.T) {
	t.Parallel()
	for _, c := range corpus(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := gate(false, c.data)
			if !registry.HasCode(err, registry.CodeUnsafe) || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "models/it: ") {
				t.Errorf("error %v, want CodeUnsafe that names the file and says %q", err, c.says)
			}
			native := strings.Contains(fmt.Sprint(err), "labelled native-code")
			if err := gate(true, c.data); native != (err == nil) {
				t.Errorf("in an engine labelled native-code: %v, want a refusal: %v", err, !native)
			}
		})
	}
}

// Text and noise are not mistaken for what they begin like.
func TestGateLetsTextAndNoisePass(t *testing.T) {
	t.Parallel()
	for c := byte(' '); c < 0x7f; c++ {
		for _, text := range []string{
			fmt.Sprintf("%cagle and fox\n%carrot 12\nthe quick brown fox (or dog) jumps.\n", c, c),
			fmt.Sprintf("%c\n%c\n%c\n", c, c, c),
			fmt.Sprintf("{\"class_name\": \"%cat\", \"layers\": []}", c),
		} {
			if err := gate(false, []byte(text)); err != nil && c != '.' && c != 'N' && c != 'I' {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
	r := rand.New(rand.NewPCG(14, 40))
	for range 2000 {
		noise := make([]byte, 1+r.IntN(6000))
		for i := range noise {
			noise[i] = byte(r.Uint32())
		}
		if err := gate(false, noise); err != nil {
			t.Errorf("%d bytes of noise that begin with %x: %v", len(noise), noise[:min(16, len(noise))], err)
		}
	}
}
