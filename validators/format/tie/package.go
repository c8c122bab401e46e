package tie

import (
	"archive/zip"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
)

// Limits on packages of AOTInductor, and where their headers say what is read (elf.h; for code of NVIDIA, EF_CUDA_SM of LLVM's
// BinaryFormat/ELF.h, of which version 8 of the format has the architecture one byte further).
const (
	maxPackageEntries, maxPackageMetadata = 1 << 16, 64 << 10

	elfCUDA                    = 190 // e_machine
	elfCUDALater               = 8   // e_ident[EI_ABIVERSION]
	elfABIVersion, elfCUDAFlag = 8, 48
)

// packageMetadata is what PyTorch writes beside each shared object: the device that it is for, and of a GPU its compute
// capability. The version of PyTorch is added by the driver of mlpromote.
type packageMetadata struct {
	Device     string `json:"AOTI_DEVICE_KEY"`
	Capability string `json:"AOTI_COMPUTE_CAPABILITY"`
	Torch      string `json:"torch"`
}

// Package reads a package of AOTInductor: a zip archive with one shared object, JSON about it, and for a GPU its kernels as
// machine code. The loader unpacks it into a folder, so its entries have plain paths, and are stored as they are.
func Package(r io.ReaderAt, size int64) (Tie, error) {
	archive, err := bound.Zip(r, size)
	if err != nil {
		return Tie{}, registry.Errorf(registry.CodeInvalid, "this is not a package of AOTInductor: %w", err)
	}
	if len(archive.File) > maxPackageEntries {
		return Tie{}, registry.Errorf(registry.CodeInvalid, "the package has %d entries, want at most %d", len(archive.File), maxPackageEntries)
	}
	p := aotiPackage{r: r, size: size, seen: make(map[string]bool)}
	for _, f := range archive.File {
		if err := p.add(f); err != nil {
			return Tie{}, err
		}
	}
	return p.tie()
}

// aotiPackage is what was found in a package.
type aotiPackage struct {
	r        io.ReaderAt
	size     int64
	seen     map[string]bool
	about    *packageMetadata
	object   *io.SectionReader
	kernels  string // architecture of its kernels; empty without any
	packaged int    // bytes of metadata
}

func (p *aotiPackage) add(f *zip.File) error {
	if !fs.ValidPath(f.Name) || strings.Contains(f.Name, `\`) || p.seen[f.Name] {
		return registry.Errorf(registry.CodeUnsafe, "entry %.200q of the package: want a path that stays in its folder, and each only once", f.Name)
	}
	p.seen[f.Name] = true
	if f.Method != zip.Store {
		return registry.Errorf(registry.CodeInvalid, "entry %.200q of the package is compressed, and PyTorch stores entries as they are", f.Name)
	}
	at, err := f.DataOffset()
	if err != nil || at < 0 || f.UncompressedSize64 > uint64(p.size) || at > p.size-int64(f.UncompressedSize64) {
		return registry.Errorf(registry.CodeInvalid, "entry %.200q of the package lies outside of it", f.Name)
	}
	body := io.NewSectionReader(p.r, at, int64(f.UncompressedSize64))
	switch {
	case strings.HasSuffix(f.Name, "_metadata.json"):
		return p.addMetadata(f.Name, body)
	case strings.HasSuffix(f.Name, ".so") && p.object != nil:
		return registry.Errorf(registry.CodeInvalid, "the package has more than one shared object: want one model")
	case strings.HasSuffix(f.Name, ".so"):
		p.object = body
	case strings.HasSuffix(f.Name, ".cubin"):
		return p.addKernel(f.Name, body)
	}
	return nil
}

func (p *aotiPackage) addMetadata(name string, body *io.SectionReader) error {
	if p.packaged += int(min(body.Size(), maxPackageMetadata+1)); p.packaged > maxPackageMetadata {
		return registry.Errorf(registry.CodeInvalid, "the package has more than %d bytes of metadata", maxPackageMetadata)
	}
	var said packageMetadata
	if err := json.NewDecoder(body).Decode(&said); err != nil {
		return registry.Errorf(registry.CodeInvalid, "%.200q of the package is not JSON: %w", name, err)
	}
	if p.about != nil && *p.about != said {
		return registry.Errorf(registry.CodeInvalid, "the package names the devices %s and %s: want one device", *p.about, said)
	}
	p.about = &said
	return nil
}

// String names the target.
func (m packageMetadata) String() string {
	return strings.TrimSpace(m.Device+" "+m.Capability) + " with torch " + cmp.Or(m.Torch, "of a version that it does not say")
}

// addKernel reads the architecture of machine code for NVIDIA's devices.
func (p *aotiPackage) addKernel(name string, body *io.SectionReader) error {
	var head [elfHeader]byte
	if n, _ := body.ReadAt(head[:], 0); n < len(head) || string(head[:6]) != "\x7fELF\x02\x01" || binary.LittleEndian.Uint16(head[18:]) != elfCUDA {
		return registry.Errorf(registry.CodeInvalid, "%.200q of the package is not code for NVIDIA's devices", name)
	}
	flags := binary.LittleEndian.Uint32(head[elfCUDAFlag:])
	if head[elfABIVersion] >= elfCUDALater {
		flags >>= 8
	}
	arch := fmt.Sprintf("sm_%d", flags&0xff)
	if p.kernels != "" && p.kernels != arch {
		return registry.Errorf(registry.CodeInvalid, "the package has code for %s and for %s: want one architecture", p.kernels, arch)
	}
	p.kernels = arch
	return nil
}

// tie puts together what was found.
func (p *aotiPackage) tie() (Tie, error) {
	if p.about == nil || p.object == nil || p.about.Torch == "" {
		return Tie{}, registry.Errorf(registry.CodeInvalid, "this is not a package of AOTInductor as mlpromote makes them: want a shared object, and metadata with the version of PyTorch")
	}
	host, err := Object(p.object, p.object.Size())
	if err != nil {
		return Tie{}, err
	}
	switch said := "sm_" + p.about.Capability; {
	case p.about.Device == "cpu" && p.kernels == "":
		host.Runtime = p.about.Torch
		return host, nil
	case p.about.Device == "cuda" && p.about.Capability != "" && (p.kernels == "" || p.kernels == said):
		return Tie{Runtime: p.about.Torch, Backend: "cuda", Arch: said, Host: host.Arch}, nil
	}
	return Tie{}, registry.Errorf(registry.CodeInvalid, "the package is declared for %s, and has kernels for %s", p.about, cmp.Or(p.kernels, "no device"))
}
