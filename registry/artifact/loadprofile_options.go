package artifact

import (
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/toolchains"
)

// How reports say that an engine was loaded.
const (
	LoadDefault   = "runtime default" // as a plain load does it
	LoadByProfile = "load profile"
)

// LoadOptions lists the options that a load profile can set for a runtime, in the order of their
// names; none for a runtime that this program does not know.
func LoadOptions(runtime string) []string {
	known, _ := toolchains.Find(runtime)
	return registry.SortedKeys(known.Options)
}

// loadVariablePrefixes are how variables begin that runtimes and their libraries of kernels read.
var loadVariablePrefixes = []string{
	"BLIS_", "CUDA_", "DNNL_", "GOMP_", "HIP_", "IREE_", "KMP_", "MKL_", "NVIDIA_", "OMP_", "ONEDNN_",
	"OPENBLAS_", "OPENVINO_", "ORT_", "OV_", "ROCR_", "TBB_", "TF_", "TVM_", "XNNPACK_",
}

// loadVariableWords are in the names of variables that make a runtime read or write a file, or
// load code: CUDA_INJECTION64_PATH, ONEDNN_JIT_DUMP, OV_FRONTEND_PATH.
var loadVariableWords = []string{
	"PATH", "DIR", "FILE", "LIB", "PLUGIN", "INJECT", "PRELOAD", "DUMP", "CONFIG", "CACHE", "TRACE", "TOOL", "LOG", "PROFIL", "DEBUG", "FLAGS",
}
