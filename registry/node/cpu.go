package node

import (
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/cpuid/v2"

	"mlpromote.dev/mlpromote/registry/artifact"
)

// feature maps a feature name that targets use to its bit.
type feature struct {
	name string
	id   cpuid.FeatureID
}

// features is the fixed list of processor features that a Node can name. It has those that
// change the results of arithmetic (fused and dot-product instructions round and saturate at
// other points) and those that engines are compiled for. Names are those of the Linux kernel in
// /proc/cpuinfo. The list only grows, because a stored target may require any feature that was
// ever on it.
func features() []feature {
	return []feature{
		// amd64: vectors and fused multiply-add
		{"sse4_1", cpuid.SSE4}, {"sse4_2", cpuid.SSE42}, {"avx", cpuid.AVX}, {"avx2", cpuid.AVX2}, {"fma", cpuid.FMA3}, {"f16c", cpuid.F16C},
		{"avx512f", cpuid.AVX512F}, {"avx512bw", cpuid.AVX512BW}, {"avx512cd", cpuid.AVX512CD}, {"avx512dq", cpuid.AVX512DQ},
		{"avx512vl", cpuid.AVX512VL}, {"avx512vbmi", cpuid.AVX512VBMI}, {"avx512_vbmi2", cpuid.AVX512VBMI2},
		{"avx512_fp16", cpuid.AVX512FP16}, {"avx512_bf16", cpuid.AVX512BF16}, {"avx_ne_convert", cpuid.AVXNECONVERT},
		// amd64: integer dot products that do not saturate in between
		{"avx512_vnni", cpuid.AVX512VNNI}, {"avx_vnni", cpuid.AVXVNNI}, {"avx_vnni_int8", cpuid.AVXVNNIINT8}, {"avx_vnni_int16", cpuid.AVXVNNIINT16},
		// amd64: tiles
		{"amx_tile", cpuid.AMXTILE}, {"amx_int8", cpuid.AMXINT8}, {"amx_bf16",
			cpuid.AMXBF16}, {"amx_fp16", cpuid.AMXFP16}, {"amx_complex", cpuid.AMXCOMPLEX},
		// arm64
		{"asimd", cpuid.ASIMD}, {"asimdhp", cpuid.ASIMDHP}, {"asimddp", cpuid.ASIMDDP}, {"asimdfhm", cpuid.FHM}, {"fphp", cpuid.FPHP},
		{"bf16", cpuid.BF16}, {"i8mm", cpuid.I8MM}, {"sve", cpuid.SVE}, {"sve2", cpuid.SVE2},
	}
}

// level is an x86-64 level with the features of our list that it requires beyond the level below. Source: the x86-64
// psABI, section 3.1.1.
type level struct {
	name     string
	features []string
}

// levels is the levels above v1, in ascending order.
func levels() []level {
	return []level{
		{"v2", []string{"sse4_1", "sse4_2"}},
		{"v3", []string{"avx", "avx2", "f16c", "fma"}},
		{"v4", []string{"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}},
	}
}

// FeatureNames returns the processor features that Describe can report, sorted.
func FeatureNames() []string {
	var names []string
	for _, f := range features() {
		names = append(names, f.name)
	}
	slices.Sort(names)
	return names
}

func describeCPU(info cpuInfo) artifact.NodeCPU {
	c := artifact.NodeCPU{
		Arch:   runtime.GOARCH,
		Vendor: strings.TrimSpace(cpuid.CPU.VendorString),
		Model:  strings.Join(strings.Fields(cpuid.CPU.BrandName), " "),
	}
	if c.Model == "" {
		c.Model = info.model
	}
	// X64Level follows the x86-64 psABI. It is 0 on other architectures.
	if level := cpuid.CPU.X64Level(); level > 0 && runtime.GOARCH == "amd64" {
		c.Level = "v" + strconv.Itoa(level)
	}
	for _, f := range features() {
		if cpuid.CPU.Supports(f.id) {
			c.Features = append(c.Features, f.name)
		}
	}
	slices.Sort(c.Features)
	return c
}

// hypervisor returns the hypervisor name from CPUID leaf 0x40000000.
func hypervisor() string { return cpuid.CPU.HypervisorVendorString }

// emulated reports whether the processor is emulated in software. QEMU puts its name into CPUID
// and its processor models into the model name; Apple's Rosetta puts its name into the model
// name. An emulated program may also see the /proc/cpuinfo of the host, which then shows
// another architecture.
func emulated(info cpuInfo, arch, hypervisor string) bool {
	model := strings.ToLower(info.model)
	switch {
	case strings.HasPrefix(hypervisor, "TCGTCGTCG"), strings.Contains(model, "qemu"), strings.Contains(model, "virtualapple"):
		return true
	case info.arch != "" && info.arch != arch:
		return true
	}
	return false
}
