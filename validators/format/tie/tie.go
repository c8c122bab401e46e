// Package tie reads the requirements of engines on a machine from their bytes: the release of their runtime, the instructions of
// its CPU, the architecture and driver of its device.
package tie

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// Tie has an engine's requirements according to its own bytes, not according to its producer. A
// field that the format does not have is empty.
type Tie struct {
	Runtime      string    `json:"runtime,omitempty"`      // exact version of the runtime: "2026.4.1"
	Instructions string    `json:"instructions,omitempty"` // instruction set of the CPU in oneDNN's terms: "AVX2"
	Backend      string    `json:"backend,omitempty"`      // backend that generated its code: "llvm-cpu", "cuda", "rocm"; of a program that the runtime compiles, the platform: "cpu", "cuda"
	Arch         string    `json:"arch,omitempty"`         // architecture of the CPU in LLVM's terms, or of the device: "x86-64-v3", "sm_80"
	Host         string    `json:"host,omitempty"`         // of an engine for a device: what its code for the CPU needs, "x86-64-v2"
	PTX          string    `json:"ptx,omitempty"`          // of code for CUDA that the driver compiles: version of its instruction set, "8.4"
	Driver       string    `json:"driver,omitempty"`       // oldest driver of the device that compiles it: "550"
	ONNXRuntime  onnx.Need `json:"onnxRuntime,omitzero"`   // of a graph: the oldest release that reads it
}

// A Reader reads the requirements of an engine in the size bytes of r. Errors: CodeInvalid for bytes that are not in its
// format.
type Reader func(r io.ReaderAt, size int64) (Tie, error)

// Open reads the requirements of the engine in a file. With a nil reader it returns the zero Tie.
func Open(path string, read Reader) (Tie, error) {
	if read == nil {
		return Tie{}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return Tie{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Tie{}, err
	}
	return read(f, info.Size())
}

// Graph reads a graph of ONNX: it needs a release of ONNX Runtime that knows its operators.
func Graph(r io.ReaderAt, size int64) (Tie, error) {
	model, err := onnx.Read(r, size, bound.Limits{})
	if err != nil {
		return Tie{}, err
	}
	need, err := model.Runtime()
	return Tie{ONNXRuntime: need}, err
}

// Limits on what is read: the requirements of a blob, and the bytecode of a module, which is in
// a separate file, apart from weights and code.
const (
	maxRequirements = 4096
	maxBytecode     = 64 << 20
	maxAttributes   = 4096 // architecture of the device that a module requires
)

// blobMagic is the beginning of exports of OpenVINO's CPU plugin (2026.4,
// src/plugins/intel_cpu).
var blobMagic = []byte("RR_UPCVO")

// blobISA maps the description in a blob to oneDNN's name of the instruction set
// (dnnl_cpu_isa_t, without its prefix).
var blobISA = map[string]string{
	"Intel SSE4.1": "SSE41",
	"Intel AVX2":   "AVX2",
	"Intel AVX-512 with AVX512BW, AVX512VL, and AVX512DQ extensions": "AVX512_CORE",
	"Intel AVX-512 with Intel DL Boost":                              "AVX512_CORE_VNNI",
	"Intel AVX-512 with Intel DL Boost and bfloat16 support":         "AVX512_CORE_BF16",
}

// Blob reads the header of a blob of OpenVINO: the magic, a version of four bytes, a length of eight
// bytes, and a text of that length: "meta=1.0;ov=2026.4.1;isa=Intel AVX2".
func Blob(r io.ReaderAt, size int64) (Tie, error) {
	head := make([]byte, 20)
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, size), head); err != nil || !bytes.HasPrefix(head, blobMagic) {
		return Tie{}, registry.Errorf(registry.CodeInvalid,
			"this is not a blob of OpenVINO's CPU plugin: it does not begin with %s", blobMagic)
	}
	length := int64(min(binary.LittleEndian.Uint64(head[12:]), maxRequirements+1))
	if length > maxRequirements || 20+length > size {
		return Tie{}, registry.Errorf(registry.CodeInvalid,
			"the blob's requirements take %d bytes, want at most %d, and less than the file", length, maxRequirements)
	}
	text := make([]byte, length)
	if _, err := r.ReadAt(text, 20); err != nil && !errors.Is(err, io.EOF) {
		return Tie{}, err
	}
	var tie Tie
	for part := range strings.SplitSeq(string(text), ";") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "ov":
			tie.Runtime = value
		case "isa":
			if tie.Instructions = blobISA[value]; tie.Instructions == "" {
				return Tie{}, registry.Errorf(registry.CodeInvalid,
					"the blob is for instructions %q, which are not known here", value)
			}
		}
	}
	if tie.Runtime == "" || tie.Instructions == "" {
		return Tie{}, registry.Errorf(registry.CodeInvalid,
			"the blob's requirements are %q: want a version (ov) and instructions (isa)", text)
	}
	return tie, nil
}

// A module states the device that it requires in the attributes with which its code was
// generated: #hal.executable.target<"cuda", "cuda-nvptx-fb", {... arch = "sm_80" ...}>.
var (
	moduleTarget = regexp.MustCompile(`#hal\.executable\.target<"([a-z0-9-]{1,32})", "[A-Za-z0-9_-]{1,64}", \{`)
	moduleCPU    = regexp.MustCompile(`\bcpu = "([A-Za-z0-9_.-]{1,64})"`)
	moduleArch   = regexp.MustCompile(`\barch = "([A-Za-z0-9_.:+-]{1,64})"`)
)

// Module reads an IREE module: a zip archive whose entry module.fb is bytecode.
func Module(r io.ReaderAt, size int64) (Tie, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return Tie{}, registry.Errorf(registry.CodeInvalid, "this is not an IREE module: %w", err)
	}
	at := slices.IndexFunc(archive.File, func(f *zip.File) bool { return f.Name == "module.fb" })
	if at < 0 {
		return Tie{}, registry.Errorf(registry.CodeInvalid, "this is not an IREE module: it has no module.fb")
	}
	code, err := readEntry(archive.File[at])
	if err != nil {
		return Tie{}, err
	}
	var tie Tie
	for _, found := range moduleTarget.FindAllSubmatchIndex(code, 64) {
		of := Tie{Backend: string(code[found[2]:found[3]])}
		attributes := code[found[1]:min(found[1]+maxAttributes, len(code))]
		pattern := moduleArch
		if of.Backend == "llvm-cpu" {
			pattern = moduleCPU
		}
		if arch := pattern.FindSubmatch(attributes); arch != nil {
			of.Arch = string(arch[1])
		}
		if tie != (Tie{}) && tie != of {
			return Tie{}, registry.Errorf(registry.CodeInvalid,
				"the module has code for %s %s and for %s %s: want one target", tie.Backend, tie.Arch, of.Backend, of.Arch)
		}
		tie = of
	}
	if tie.Backend == "" {
		return Tie{}, registry.Errorf(registry.CodeInvalid, "the module does not name the device of its code")
	}
	if err := tie.readPTX(archive.File); err != nil {
		return Tie{}, err
	}
	return tie, nil
}
