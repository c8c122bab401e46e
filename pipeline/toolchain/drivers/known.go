package drivers

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/toolchains"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/tie"
)

// known returns the properties of each program that its files do not have.
func known() []Source {
	return slices.Concat(runtimes(), compilers(), fromSources(), unproven(), importers())
}

// runtimes optimize graphs, and choose kernels when they load them.
func runtimes() []Source {
	return []Source{
		{
			Name: "onnxruntime", Package: "onnxruntime", Library: "onnxruntime/capi/libonnxruntime.so.*", Language: Python, Oldest: "3.11", Quantizes: true, Installed: 266, Routine: true,
			Imports: []string{"onnx"}, Options: onnxRuntimeOptions(), Triton: true,
			Profile: toolchain.Profile{
				Name: "onnxruntime", Format: "onnx", Entry: "model.onnx", Reading: graph(), Reproducible: evidence.ReproducibleBytes, Cost: oneThread(),
				Level:     "disable_all", // of a fixed run, such as that of the reference
				Providers: artifact.ProvidersOf("CPUExecutionProvider"), ONNXRuntime: true, Operators: true,
				CompileOptions: onnxruntimeOptions,
			},
		},
		{
			Name: "onnxruntime-openvino", Package: "onnxruntime-openvino", Language: Python, Oldest: "3.11", Installed: 451,
			Options: onnxRuntimeOptions(),
			Profile: toolchain.Profile{
				Name: "onnxruntime-openvino", Format: "onnx", Entry: "model.onnx", Reading: graph(), Reproducible: evidence.ReproducibleBytes, Cost: allCores(),
				Providers: artifact.ProvidersOf("OpenVINOExecutionProvider"), CompilesWithProviders: true, ONNXRuntime: true,
				Forms:          []toolchain.Form{{Name: "epcontext", ExactRuntime: true}},
				CompileOptions: noOptions, // the provider chooses kernels when it loads the model
			},
		},
		{
			Name: "openvino", Package: "openvino", Language: Python, Oldest: "3.11", Installed: 266, Routine: true,
			Lacks:   slices.Concat(trees(), linear(), []string{"ArrayFeatureExtractor", "Binarizer", "Imputer", "LabelEncoder", "LinearRegressor", "OneHotEncoder"}),
			Options: openvinoOptions(), Triton: true,
			Profile: toolchain.Profile{
				Name: "openvino", Format: "openvino-ir", Entry: "model.xml", Reproducible: evidence.ReproducibleBytes, Cost: allCores(),
				KeepsFP32:      [2]string{"INFERENCE_PRECISION_HINT", "f32"},
				CompileOptions: noOptions, // the graph is kept as it is: OpenVINO chooses its kernels when it loads it
				Forms: []toolchain.Form{{Name: "blob", Format: "openvino-blob", Entry: "model.blob", Reading: toolchain.Reading{Tie: tie.Blob},
					ExactRuntime: true, Alone: true, CompileOptions: blobOptions}},
			},
		},
	}
}

// trees and linear are operators of ai.onnx.ml that few compilers have.
func trees() []string { return []string{"TreeEnsembleClassifier", "TreeEnsembleRegressor"} }

func linear() []string { return []string{"LinearClassifier", "Scaler"} }

// unproven compile for devices on which no driver runs engines.
func unproven() []Source {
	return []Source{
		{
			Name: "tensorrt-rtx", Package: "tensorrt-rtx-cu13-libs", Language: Python, Oldest: "3.11", Installed: 351, Accelerators: true,
			Lacks:   append(trees(), "Scaler"),
			Example: artifact.Target{OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64"}, Accelerator: &artifact.TargetAccelerator{Vendor: "nvidia", Arch: "sm_86"}},
			Profile: toolchain.Profile{
				Name: "tensorrt-rtx", Format: "tensorrt-rtx-engine", Entry: "model.engine", Reading: toolchain.Reading{Tie: tie.RTX}, NativeCode: true, ExactRuntime: true, CompileOnly: true, Sizes: true,
				Reproducible: evidence.ReproducibleNone, // names of buffers can differ
				Cost:         allCores(), CompileOptions: rtxOptions,
			},
		},
		{
			Name: "coreml", Package: "coremltools", Language: Python, Oldest: "3.11", Installed: 224,
			Lacks:   append(linear(), append(trees(), "Normalizer")...),
			Example: artifact.Target{OS: "darwin", CPU: artifact.TargetCPU{Arch: "arm64"}},
			Profile: toolchain.Profile{
				Name: "coreml", Format: "coreml-mlpackage", Entry: "model.mlpackage/Manifest.json", CompileOnly: true, Sizes: true,
				Reproducible: evidence.ReproducibleBytes, Cost: oneThread(), CompileOptions: coremlOptions,
			},
		},
	}
}

// compilers make something else of a graph.
func compilers() []Source {
	return []Source{
		{
			Name: "iree", Package: "iree-base-runtime", Language: Python, Oldest: "3.11", Installed: 587, Routine: true, Accelerators: true,
			Lacks:   append(trees(), "Scaler"),
			Options: map[string]toolchains.Setting{"driver": words("local-sync (one thread) or local-task", "local-sync", "local-task")},
			Needs:   []Need{{GPUs: []string{"nvidia", "amd"}, For: "running engines for GPUs; it compiles them without"}},
			Profile: toolchain.Profile{
				Name: "iree", Format: "iree-vmfb", Entry: "model.vmfb", Reading: toolchain.Reading{Tie: tie.Module}, Devices: devices(), NativeCode: true, ExactRuntime: true, Reproducible: evidence.ReproducibleBytes, Cost: allCores(),
				Tuning: "tuning.mlir", CompileOptions: ireeOptions, Driver: ireeDriver,
			},
		},
		{
			Name: "litert", Package: "ai-edge-litert", Language: Python, Oldest: "3.12", Installed: 589,
			Lacks: append(trees(), "Scaler"),
			Needs: []Need{{Library: "libGL.so.1", Package: "libgl1"}}, // of OpenCV, which onnx2tf imports
			Options: map[string]toolchains.Setting{ // arguments of tf.lite.Interpreter
				"num_threads": positive(),
				"experimental_op_resolver_type": words("AUTO, or BUILTIN_WITHOUT_DEFAULT_DELEGATES to run without XNNPACK",
					"AUTO", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"),
			},
			Profile: toolchain.Profile{
				Name: "litert", Format: "tflite", Entry: "model.tflite", Reading: toolchain.Reading{Kind: format.TFLite}, ChannelsLast: true, Reproducible: evidence.ReproducibleBytes, Cost: oneThread(),
				CompileOptions: noOptions, // a flatbuffer runs on any processor that has the runtime
				Sizes:          true,
				Forms:          []toolchain.Form{{Name: "int8", Calibrated: true}},
			},
		},
		{
			Name: "onnxruntime-web", Package: "onnxruntime-web", Language: JavaScript, Oldest: "20", Installed: 145, Routine: true,
			Options: map[string]toolchains.Setting{ // SessionOptions, and ort.env
				"graphOptimizationLevel": words("disabled, basic, extended, layout or all", "disabled", "basic", "extended", "layout", "all"),
				"numThreads":             count(),
			},
			Profile: toolchain.Profile{
				Name: "onnxruntime-web", Format: "onnx", Entry: "model.onnx", Reading: graph(), ONNXRuntime: true, Reproducible: evidence.ReproducibleBytes, Cost: oneThread(),
				LoadsProcess:   true,      // it has one number of threads for a process
				CompileOptions: noOptions, // WebAssembly is the same everywhere
			},
		},
		{
			Name: "tvm", Package: "apache-tvm", Language: Python, Oldest: "3.11", Installed: 427,
			Lacks:   append(linear(), append(trees(), "Normalizer")...),
			Needs:   []Need{{Program: "cc", Package: "gcc libc6-dev"}},        // which links engines
			Options: map[string]toolchains.Setting{"num_threads": positive()}, // runtime.config_threadpool
			Profile: toolchain.Profile{
				Name: "tvm", Format: "tvm-so", Entry: "model.so", Reading: toolchain.Reading{Tie: tie.Object}, Devices: devices(), NativeCode: true, ExactRuntime: true, Reproducible: evidence.ReproducibleSemantic, Cost: allCores(),
				CompileOptions: tvmOptions, Sizes: true,
			},
		},
		{
			Name: "xla", Package: "jax", Language: Python, Oldest: "3.12", Installed: 599, Accelerators: true,
			Lacks:   append(linear(), append(trees(), "Normalizer")...),
			Imports: []string{"jax"},
			Drives:  []Versions{{Package: "jax", Oldest: "0.11", Newest: "0.12"}, {Package: "onnx", Oldest: "1.23", Newest: "1.23"}, {Package: "numpy", Oldest: "2.4", Newest: "2.5"}},
			Needs:   []Need{{GPUs: []string{"nvidia"}, For: "running engines for GPUs; it makes them without"}},
			Profile: toolchain.Profile{
				Name: "xla", Format: "jax-export", Entry: "model.jax", Reading: toolchain.Reading{Kind: format.JAXExport, Tie: tie.Export}, Device: "cpu", Reproducible: evidence.ReproducibleBytes, Cost: allCores(),
				CompileOptions: xlaOptions, Sizes: true,
				Forms: []toolchain.Form{{Name: "hlo", Format: "hlo", Entry: "model.hlo.pb", Intermediate: true, CompileOptions: noOptions}},
			},
		},
	}
}

// fromSources compile the source of a model as it is.
func fromSources() []Source {
	return []Source{
		{
			Name: "torch-inductor", Shares: "torch", Package: "torch", Language: Python, Oldest: "3.12", Installed: 5610, Large: cudaWheels, Accelerators: true,
			Options: map[string]toolchains.Setting{"num_threads": positive()},
			Drives: []Versions{{Package: "torch", Oldest: "2.11", Newest: "2.15"},
				{Package: "torchao", Oldest: "0.18", Newest: "0.18", Optional: true}, {Package: "numpy", Oldest: "2.4", Newest: "2.5"}},
			Needs: []Need{
				{Program: "g++", Package: "g++"}, // which compiles engines
				{GPUs: []string{"nvidia"}, For: "compiling and running engines for GPUs"},
			},
			Profile: toolchain.Profile{
				Name: "torch-inductor", Format: "torch-aoti", Entry: "model.pt2", Reading: toolchain.Reading{Tie: tie.Package, Unpacked: true}, Devices: devices(), NativeCode: true, ExactRuntime: true, Reproducible: evidence.ReproducibleBytes, Cost: allCores(),
				Sources: []string{"torch-export", "huggingface"}, Quantizes: []string{"huggingface"}, NeedsDevice: true,
				CompileOptions: inductorOptions, Driver: inductorDriver,
			},
		},
		{
			Name: "llama-cpp", Package: "xllamacpp", Language: Python, Oldest: "3.11", Installed: 190, Routine: true, AsIs: []string{"gguf"},
			Options: map[string]toolchains.Setting{"n_threads": positive(), "n_ubatch": positive()}, // llama_context_params
			Profile: toolchain.Profile{
				Name: "llama-cpp", Format: "gguf", Entry: "model.gguf", Reproducible: evidence.ReproducibleBytes, Cost: allCores(),
				Sources: []string{"gguf"}, Spinning: "n_threads", CompileOptions: llamaOptions,
			},
		},
	}
}

// cudaWheels is why PyTorch takes gigabytes on a machine without a GPU.
const cudaWheels = "the packages of torch on PyPI bring CUDA along, and packages for CPUs alone are not there"

// importers make no engines: they import or quantize models.
func importers() []Source {
	return []Source{
		{
			Name: "scikit-learn", Package: "scikit-learn", Language: Python, Oldest: "3.11", Installed: 319, Routine: true,
			Imports: []string{"skops", "pickle"},
		},
		{
			Name: "xgboost", Package: "xgboost-cpu", Language: Python, Oldest: "3.12", Installed: 264, Routine: true,
			Imports: []string{"xgboost"},
		},
		{
			Name: "lightgbm", Package: "lightgbm", Language: Python, Oldest: "3.11", Installed: 270, Routine: true,
			Imports: []string{"lightgbm"},
		},
		{
			Name: "pmml", Package: "numpy", Language: Python, Oldest: "3.11", Installed: 119, Routine: true,
			Imports: []string{"pmml"},
		},
		{Name: "nncf", Package: "nncf", Language: Python, Oldest: "3.11", Quantizes: true, Installed: 413},
		{
			Name: "safetensors", Package: "numpy", Language: Python, Oldest: "3.11", Installed: 119, Routine: true,
			Imports: []string{"safetensors"},
		},
		{
			Name: "tensorflow", Package: "tensorflow-cpu", Language: Python, Oldest: "3.11", Installed: 1513,
			Imports: []string{"tflite", "savedmodel", "keras"},
		},
		{
			Name: "torch", Package: "torch", Language: Python, Oldest: "3.12", Installed: 5610, Large: cudaWheels,
			Drives: []Versions{{Package: "torch", Oldest: "2.11", Newest: "2.15"}, {Package: "onnx", Oldest: "1.23", Newest: "1.23"},
				{Package: "onnxscript", Oldest: "0.7", Newest: "0.7"}, {Package: "transformers", Oldest: "5.17", Newest: "5.24"},
				{Package: "gguf", Oldest: "0.19", Newest: "0.19", Optional: true}, {Package: "numpy", Oldest: "2.4", Newest: "2.5"}},
			Imports: []string{"torch-export", "torchscript", "huggingface", "gguf"},
		},
	}
}

// graph is how an ONNX model is read.
func graph() toolchain.Reading {
	return toolchain.Reading{Kind: format.ONNX, Tie: tie.Graph}
}

// devices are the devices of compilers that name them by their backends of LLVM.
func devices() map[string]string {
	return map[string]string{"llvm-cpu": "local", "cuda": "cuda", "rocm": "hip"}
}

// Costs of steps. All of them hold the model two or three times in memory: as it was read, as a
// graph, and as output. allCores is for tools that always start a thread for every core.
func allCores() toolchain.Cost { return toolchain.Cost{MemoryBytes: 512 << 20, ModelFactor: 3} }

func oneThread() toolchain.Cost {
	return toolchain.Cost{Cores: 1, MemoryBytes: 512 << 20, ModelFactor: 3}
}

// ireeDriver is the oldest driver that compiles the PTX which IREE 3.13 writes for an architecture. What an
// engine says of itself is compared with it.
func ireeDriver(t artifact.Target) string {
	if t.Accelerator == nil || t.Accelerator.Vendor != "nvidia" {
		return ""
	}
	return map[string]string{
		"sm_75": "510", "sm_80": "510", "sm_86": "510", // PTX 7.6
		"sm_89":  "550", // PTX 8.4
		"sm_120": "570", // PTX 8.7
	}[t.Accelerator.Arch]
}

// ireeDevice names a vendor's devices as IREE does, and lists the architectures that IREE 3.13 compiles for: by the names that
// nodes report. The compiler also takes names of families and products, such as ada, which no node has as its architecture.
func ireeDevice(vendor string) (device string, archs []string) {
	switch vendor {
	case "nvidia":
		return "cuda", []string{"sm_60", "sm_61", "sm_62", "sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_120", "sm_121"}
	case "amd":
		return "hip", []string{"gfx908", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1101", "gfx1103", "gfx1150", "gfx1151", "gfx1200", "gfx1201", "gfx1250"}
	}
	return "", nil
}

// ireeOptions depend only on the target, not on the machine that compiles.
func ireeOptions(t artifact.Target, _ string) (map[string]any, error) {
	if a := t.Accelerator; a != nil {
		device, archs := ireeDevice(a.Vendor)
		if device == "" {
			return nil, registry.Errorf(registry.CodeInvalid, "target %s: iree compiles for accelerators of vendor nvidia or amd, not %q", t.Name, a.Vendor)
		}
		if !slices.Contains(archs, a.Arch) {
			return nil, registry.Errorf(registry.CodeInvalid, "target %s: iree 3.13 compiles for an accelerator of vendor %s with one of the archs %s, not %q",
				t.Name, a.Vendor, strings.Join(archs, ", "), a.Arch)
		}
		return map[string]any{"device": device, "arch": a.Arch}, nil
	}
	switch t.CPU.Arch {
	case "amd64":
		options := map[string]any{"device": "local", "cpu": llvmLevel(t.CPU)}
		if features := llvmFeatures(t.CPU.Features); len(features) > 0 {
			options["features"] = features
		}
		return options, nil
	case "arm64":
		return map[string]any{"device": "local", "cpu": "generic", "triple": "aarch64-unknown-linux-gnu"}, nil
	}
	return nil, registry.Errorf(registry.CodeInvalid, "target %s: iree compiles for cpu.arch amd64 or arm64, not %q", t.Name, t.CPU.Arch)
}

// llvmLevel is a level of x86-64 as LLVM and GCC call it.
func llvmLevel(cpu artifact.TargetCPU) string {
	if cpu.Level == "" || cpu.Level == "v1" {
		return "x86-64"
	}
	return "x86-64-" + cpu.Level
}

// tvmOptions are those of iree for processors that the linker of this machine makes code for.
func tvmOptions(t artifact.Target, precision string) (map[string]any, error) {
	if t.Accelerator != nil || t.CPU.Arch != "amd64" || t.OS != "linux" {
		return nil, registry.Errorf(registry.CodeInvalid, "target %s: tvm compiles for os linux and cpu.arch amd64, without an accelerator", t.Name)
	}
	return ireeOptions(t, precision)
}

// coremlOptions are the same for every Mac: Core ML compiles a program where it loads it.
func coremlOptions(t artifact.Target, _ string) (map[string]any, error) {
	if t.Accelerator != nil || t.OS != "darwin" {
		return nil, registry.Errorf(registry.CodeInvalid, "target %s: coreml makes engines for os darwin, without an accelerator", t.Name)
	}
	return map[string]any{}, nil
}

// rtxOptions name the one architecture that an engine of TensorRT-RTX is for. It runs on no other, although the
// runtime compiles its kernels only where it loads the engine.
func rtxOptions(t artifact.Target, _ string) (map[string]any, error) {
	archs := []string{"sm_75", "sm_80", "sm_86", "sm_89", "sm_120", "sm_121"}
	switch a := t.Accelerator; {
	case t.CPU.Arch != "amd64" || t.OS == "darwin":
		return nil, registry.Errorf(registry.CodeInvalid, "target %s: tensorrt-rtx makes engines for cpu.arch amd64, and for os linux or windows", t.Name)
	case a == nil || a.Vendor != "nvidia" || !slices.Contains(archs, a.Arch):
		return nil, registry.Errorf(registry.CodeInvalid,
			"target %s: tensorrt-rtx compiles for an accelerator of vendor nvidia with one of the archs %s", t.Name, strings.Join(archs, ", "))
	case t.Compatibility == artifact.CompatibilityVersionCompatible:
		return nil, registry.Errorf(registry.CodeInvalid,
			"target %s: an engine of tensorrt-rtx is for %s alone: remove compatibility: version-compatible, and add a target for each other arch", t.Name, a.Arch)
	default:
		return map[string]any{"device": "cuda", "arch": a.Arch}, nil
	}
}

// inductorOptions are those of tvm for processors, without features beyond a level; for GPUs they are the architecture, and the level of the code beside its kernels.
func inductorOptions(t artifact.Target, precision string) (map[string]any, error) {
	if a := t.Accelerator; a != nil {
		if a.Vendor != "nvidia" || a.Arch == "" || t.Compatibility == artifact.CompatibilityVersionCompatible {
			return nil, registry.Errorf(registry.CodeInvalid,
				"target %s: torch-inductor compiles for accelerators of vendor nvidia with an arch such as sm_90, whose code no other device runs (without compatibility)", t.Name)
		}
		if t.OS != "linux" || t.CPU.Arch != "amd64" { // the engine has code for the processor, too
			return nil, registry.Errorf(registry.CodeInvalid, "target %s: torch-inductor compiles for accelerators in machines of os linux and cpu.arch amd64", t.Name)
		}
		return map[string]any{"device": "cuda", "arch": a.Arch, "cpu": llvmLevel(t.CPU)}, nil
	}
	if t.CPU.Arch != "amd64" || t.OS != "linux" || len(t.CPU.Features) > 0 {
		return nil, registry.Errorf(registry.CodeInvalid,
			"target %s: torch-inductor compiles for os linux and cpu.arch amd64 with a level and no features, or for an accelerator of vendor nvidia", t.Name)
	}
	return tvmOptions(t, precision)
}

// inductorDriver is the oldest driver of NVIDIA that runs CUDA 13, which the PyTorch of the lock is built for.
func inductorDriver(t artifact.Target) string {
	if t.Accelerator == nil {
		return ""
	}
	return "580"
}

// xlaOptions are the same for every processor, and for every GPU of a vendor: XLA makes machine code where it loads the
// program.
func xlaOptions(t artifact.Target, _ string) (map[string]any, error) {
	switch a := t.Accelerator; {
	case a == nil:
		return map[string]any{}, nil
	case a.Vendor == "nvidia":
		return map[string]any{"device": "cuda"}, nil
	case a.Vendor == "google":
		return map[string]any{"device": "tpu"}, nil
	}
	return nil, registry.Errorf(registry.CodeInvalid, "target %s: xla compiles for processors, and for accelerators of vendor nvidia or google", t.Name)
}

// llamaOptions are the same for every processor: llama.cpp chooses kernels when it loads the file. Its build for GPUs is not
// installed, so no engine for one could be run.
func llamaOptions(t artifact.Target, _ string) (map[string]any, error) {
	if t.Accelerator != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "target %s: llama-cpp makes engines for processors, without an accelerator", t.Name)
	}
	return map[string]any{}, nil
}

// blobOptions name the instruction set that a blob of OpenVINO's CPU plugin is for, in oneDNN's
// terms.
func blobOptions(t artifact.Target, _ string) (map[string]any, error) {
	has := func(feature string) bool { return slices.Contains(t.CPU.Features, feature) }
	isa := map[string]string{"v2": "SSE41", "v3": "AVX2", "v4": "AVX512_CORE"}[t.CPU.Level]
	if t.CPU.Level == "v4" && has("avx512_vnni") {
		if isa = "AVX512_CORE_VNNI"; has("avx512_bf16") {
			isa = "AVX512_CORE_BF16"
		}
	}
	if t.CPU.Arch != "amd64" || isa == "" {
		return nil, registry.Errorf(registry.CodeInvalid,
			"target %s: a blob is for one set of instructions: want cpu.arch amd64 with level v2, v3 or v4, and for v4 the features avx512_vnni and avx512_bf16 where all machines have them", t.Name)
	}
	return map[string]any{"isa": isa}, nil
}

// llvmFeatures writes features in LLVM's form: "avx512_vnni" becomes "+avx512vnni".
func llvmFeatures(features []string) []string {
	var all []string
	for _, f := range features {
		all = append(all, "+"+strings.ReplaceAll(f, "_", ""))
	}
	return all
}

func noOptions(artifact.Target, string) (map[string]any, error) { return map[string]any{}, nil }

// onnxruntimeOptions select the highest optimization level that does not choose kernels for the
// CPU of the build. So all engines for one CPU family have the same file.
func onnxruntimeOptions(artifact.Target, string) (map[string]any, error) {
	return map[string]any{"level": "extended"}, nil
}
