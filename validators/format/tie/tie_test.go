package tie_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/onnx"
	"mlpromote.dev/mlpromote/validators/format/tie"
)

// blob is the beginning of what OpenVINO's CPU plugin exports.
func blob(requirements string) []byte {
	head := binary.LittleEndian.AppendUint32([]byte("RR_UPCVO"), 1)
	head = binary.LittleEndian.AppendUint64(head, uint64(len(requirements)))
	return append(append(head, requirements...), "\x30\x00\x00\x00<?xml"...)
}

// module is an IREE module with this text somewhere in its bytecode, and these texts in its code for CUDA.
func module(t testing.TB, text string, ptx ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	f, err := w.CreateHeader(&zip.FileHeader{Name: "module.fb", Method: zip.Store})
	if err == nil {
		_, err = f.Write([]byte("\x00IREE\x00" + text + "\x00"))
	}
	for i, code := range ptx {
		if err == nil {
			f, err = w.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("main_dispatch_%d_cuda_nvptx_fb.fb", i), Method: zip.Store})
		}
		if err == nil {
			_, err = f.Write([]byte("\x00CUDA\x00//\n" + code + "\n.address_size 64\n"))
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// object is a shared object for x86-64 with one property of that kind and value.
func object(kind, value uint32) []byte {
	le := binary.LittleEndian
	head := make([]byte, 64)
	copy(head, "\x7fELF\x02\x01\x01")
	le.PutUint16(head[18:], 62) // x86-64
	le.PutUint64(head[32:], 64) // its segments are behind the header: one, of 56 bytes
	le.PutUint16(head[54:], 56)
	le.PutUint16(head[56:], 1)
	segment := make([]byte, 56)
	le.PutUint32(segment, 0x6474e553)
	le.PutUint64(segment[8:], 120)
	le.PutUint64(segment[32:], 48)
	note := make([]byte, 48)
	le.PutUint32(note, 4)
	le.PutUint32(note[4:], 32)
	le.PutUint32(note[8:], 5)
	copy(note[12:], "GNU\x00")
	le.PutUint32(note[16:], 0xc0010001) // another property, first
	le.PutUint32(note[20:], 4)
	le.PutUint32(note[32:], kind)
	le.PutUint32(note[36:], 4)
	le.PutUint32(note[40:], value)
	return append(append(head, segment...), note...)
}

// rtxEngine is the beginning of an engine of TensorRT-RTX 1.7.1.116 for those architectures.
func rtxEngine(archs uint64) []byte {
	le := binary.LittleEndian
	head := le.AppendUint64(append([]byte("vtrt"), 0, 0, 0, 0), 2)
	head = le.AppendUint64(head, 60)
	head = append(append(head, 1, 7, 1, 116), "vtrt"...)
	return append(le.AppendUint64(head, archs), make([]byte, 20)...)
}

const (
	cpuTarget  = `#hal.device.target<"local", [#hal.executable.target<"llvm-cpu", "embedded-elf-x86_64", {cpu = "x86-64-v3", iree.encoding.resolver = #iree_cpu.cpu_encoding_resolver<>}>]>`
	cudaTarget = `#hal.device.target<"cuda", [#hal.executable.target<"cuda", "cuda-nvptx-fb", {iree_codegen.target_info = #iree_gpu.target<arch = "sm_80", features = "+ptx76">}>]>`
)

func TestRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		read tie.Reader
		data []byte
		want tie.Tie
		says string // part of the error; empty for none
	}{
		"blob":                     {tie.Blob, blob("meta=1.0;ov=2026.4.1;isa=Intel AVX2"), tie.Tie{Runtime: "2026.4.1", Instructions: "AVX2"}, ""},
		"blob of new instructions": {tie.Blob, blob("meta=1.0;ov=2026.4.1;isa=Intel AVX 99"), tie.Tie{}, `"Intel AVX 99", which are not known`},
		"blob without a version":   {tie.Blob, blob("meta=1.0;isa=Intel AVX2"), tie.Tie{}, "want a version"},
		"blob with a long header":  {tie.Blob, blob(strings.Repeat("x", 5000)), tie.Tie{}, "at most 4096"},
		"blob cut short":           {tie.Blob, blob("meta=1.0;ov=2026.4.1;isa=Intel AVX2")[:30], tie.Tie{}, "less than the file"},
		"not a blob":               {tie.Blob, []byte("<?xml version"), tie.Tie{}, "does not begin with RR_UPCVO"},
		"module for a CPU":         {tie.Module, module(t, cpuTarget), tie.Tie{Backend: "llvm-cpu", Arch: "x86-64-v3"}, ""},
		"module for CUDA":          {tie.Module, module(t, cudaTarget), tie.Tie{Backend: "cuda", Arch: "sm_80"}, ""},
		"module with PTX":          {tie.Module, module(t, cudaTarget, ".version 7.6\n.target sm_80", ".version 8.4\n.target sm_80"), tie.Tie{Backend: "cuda", Arch: "sm_80", PTX: "8.4", Driver: "550"}, ""},
		"PTX of a step between":    {tie.Module, module(t, cudaTarget, ".version 7.9\n.target sm_80"), tie.Tie{Backend: "cuda", Arch: "sm_80", PTX: "7.9", Driver: "525"}, ""},
		"PTX for another device":   {tie.Module, module(t, cudaTarget, ".version 7.6\n.target sm_80", ".version 8.4\n.target sm_90a"), tie.Tie{}, "declared for sm_80, and main_dispatch_1_cuda_nvptx_fb.fb of it is for sm_90a"},
		"PTX of the future":        {tie.Module, module(t, cudaTarget, ".version 19.0\n.target sm_80"), tie.Tie{}, "PTX 19.0, and which drivers"},
		"module for both":          {tie.Module, module(t, cpuTarget+strings.Repeat(" ", 5000)+cudaTarget), tie.Tie{}, "want one target"},
		"module for nothing":       {tie.Module, module(t, ""), tie.Tie{}, "does not name the device"},
		"no module":                {tie.Module, []byte("IREE"), tie.Tie{}, "not an IREE module"},
		"object":                   {tie.Object, object(0xc0008002, 4), tie.Tie{Backend: "llvm-cpu", Arch: "x86-64-v3"}, ""},
		"object of two levels":     {tie.Object, object(0xc0008002, 3), tie.Tie{Backend: "llvm-cpu", Arch: "x86-64-v2"}, ""},
		"object for any processor": {tie.Object, object(0xc0008002, 1), tie.Tie{Backend: "llvm-cpu", Arch: "x86-64"}, ""},
		"object of no level":       {tie.Object, object(0xc0000002, 4), tie.Tie{}, "does not name the level"},
		"object of a new level":    {tie.Object, object(0xc0008002, 16), tie.Tie{}, "does not name the level"},
		"object cut short":         {tie.Object, object(0xc0008002, 4)[:140], tie.Tie{}, "does not name the level"},
		"no object":                {tie.Object, []byte("\x7fELF"), tie.Tie{}, "not a shared object"},
		"engine of RTX":            {tie.RTX, rtxEngine(1 << 2), tie.Tie{Runtime: "1.7.1.116", Backend: "cuda", Arch: "sm_86"}, ""},
		"engine for several":       {tie.RTX, rtxEngine(0x7e), tie.Tie{}, "for the set 0x7e of architectures"},
		"engine for a new one":     {tie.RTX, rtxEngine(1 << 6), tie.Tie{}, "for the set 0x40 of architectures"},
		"engine cut short":         {tie.RTX, rtxEngine(1)[:50], tie.Tie{}, "declares 60 bytes, and has 50"},
		"plan of TensorRT":         {tie.RTX, []byte("ftrt\x00\x00\x00\x00"), tie.Tie{}, "not an engine of TensorRT-RTX"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.read(bytes.NewReader(c.data), int64(len(c.data)))
			if got != c.want {
				t.Errorf("tie %+v, want %+v", got, c.want)
			}
			if (err == nil) != (c.says == "") || err != nil && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
		})
	}
}

// A format that says nothing of what it requires has no reader, and the file is not opened.
func TestOpenWithoutReader(t *testing.T) {
	t.Parallel()
	if got, err := tie.Open("none", nil); got != (tie.Tie{}) || err != nil {
		t.Errorf("tie %+v, error %v, want none", got, err)
	}
}

// A small file with much compressed code is not read to its end.
func TestReadMuchCode(t *testing.T) {
	t.Parallel()
	code := "\x00CUDA\x00//\n.version 7.6\n.target sm_80\n" + strings.Repeat("\n", 20<<20)
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range map[string]string{"module.fb": cudaTarget, "a_cuda_nvptx_fb.fb": code, "b_cuda_nvptx_fb.fb": code, "c_cuda_nvptx_fb.fb": code, "d_cuda_nvptx_fb.fb": code} {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := tie.Module(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "more than 67108864 bytes of code for CUDA") {
		t.Errorf("error %v, want that it has too much code", err)
	}
}

// FuzzRead expects an answer for any bytes.
func FuzzRead(f *testing.F) {
	f.Add(blob("meta=1.0;ov=2026.4.1;isa=Intel AVX2"))
	f.Add(module(f, cpuTarget))
	f.Add(module(f, cudaTarget, ".version 8.4\n.target sm_80"))
	f.Add(object(0xc0008002, 4))
	f.Add(rtxEngine(1 << 2))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, read := range map[string]tie.Reader{
			"blob": tie.Blob, "module": tie.Module, "graph": tie.Graph, "object": tie.Object, "rtx": tie.RTX,
		} {
			got, err := read(io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data))), int64(len(data)))
			if err != nil && got != (tie.Tie{}) {
				t.Errorf("%s: %+v with %v", name, got, err)
			}
		}
	})
}

// blobOf is a blob that claims so many bytes of requirements.
func blobOf(requirements string, claims uint64) []byte {
	data := blob(requirements)
	binary.LittleEndian.PutUint64(data[12:], claims)
	return data
}

func TestBlobAtTheLimits(t *testing.T) {
	t.Parallel()
	const plain = "meta=1.0;ov=2026.4.1;isa=Intel AVX2"
	longest := plain + ";" + strings.Repeat("x", 4096-len(plain)-1)
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"the longest requirements": {blob(longest), ""},
		"a byte more":              {blob(longest + "x"), "at most 4096"},
		"up to the end":            {blob(plain)[:20+len(plain)], ""},
		"beyond the end":           {blob(plain)[:19+len(plain)], "less than the file"},
		"an absurd length":         {blobOf(plain, 1<<63), "at most 4096"},
		"no instructions":          {blob("meta=1.0;ov=2026.4.1"), "want a version (ov) and instructions (isa)"},
		"nothing":                  {blob(""), "want a version (ov) and instructions (isa)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tie.Blob(bytes.NewReader(c.data), int64(len(c.data)))
			if c.says == "" && err != nil {
				t.Errorf("error %v, want none", err)
			}
			if c.says != "" && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want CodeInvalid with %q", err, c.says)
			}
		})
	}
}

func TestReadGraph(t *testing.T) {
	t.Parallel()
	got, err := tie.Open("../onnx/testdata/linear.onnx", tie.Graph)
	if want := (onnx.Need{Version: "1.12", Because: "operator set 17"}); err != nil || got.ONNXRuntime != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if _, err := tie.Open("../onnx/testdata/make.py", tie.Graph); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("no graph: %v", err)
	}
}
