package registry

import "regexp"

// How reports say that an engine was loaded.
const (
	LoadDefault   = "runtime default" // as a plain load does it
	LoadByProfile = "load profile"
)

// loadSetting is what an option may be set to.
type loadSetting struct {
	pattern *regexp.Regexp
	text    string
}

func oneOfWords(pattern, text string) loadSetting {
	return loadSetting{regexp.MustCompile(`^(` + pattern + `)$`), text}
}

var (
	countSetting  = oneOfWords(`0|[1-9][0-9]{0,3}`, "a number from 0 to 9999")
	switchSetting = oneOfWords(`0|1`, "0 or 1")
	yesSetting    = oneOfWords(`YES|NO`, "YES or NO")
	anySetting    = oneOfWords(`.+`, "a value that the runtime takes")
)

// loadOptions are the options of known runtimes. No option takes the path of a file. Sources:
// onnxruntime_session_options_config_keys.h of ONNX Runtime; openvino.properties; the arguments
// of tf.lite.Interpreter; ort.env and SessionOptions of onnxruntime-common; iree.runtime;
// runtime.config_threadpool of TVM; llama_context_params of llama.h.
var loadOptions = map[string]map[string]loadSetting{
	"onnxruntime":          onnxRuntimeSettings(),
	"onnxruntime-openvino": onnxRuntimeSettings(),
	"openvino": {
		"INFERENCE_PRECISION_HINT":        oneOfWords(`f32|f16|bf16`, "f32, f16 or bf16"),
		"EXECUTION_MODE_HINT":             oneOfWords(`ACCURACY|PERFORMANCE`, "ACCURACY or PERFORMANCE"),
		"PERFORMANCE_HINT":                oneOfWords(`LATENCY|THROUGHPUT|CUMULATIVE_THROUGHPUT`, "LATENCY, THROUGHPUT or CUMULATIVE_THROUGHPUT"),
		"PERFORMANCE_HINT_NUM_REQUESTS":   countSetting,
		"NUM_STREAMS":                     oneOfWords(`AUTO|NUMA|[1-9][0-9]{0,3}`, "AUTO, NUMA or a number"),
		"INFERENCE_NUM_THREADS":           countSetting,
		"ENABLE_CPU_PINNING":              yesSetting,
		"ENABLE_HYPER_THREADING":          yesSetting,
		"SCHEDULING_CORE_TYPE":            oneOfWords(`ANY_CORE|PCORE_ONLY|ECORE_ONLY`, "ANY_CORE, PCORE_ONLY or ECORE_ONLY"),
		"DYNAMIC_QUANTIZATION_GROUP_SIZE": oneOfWords(`0|[1-9][0-9]{0,8}`, "a number"),
		"KV_CACHE_PRECISION":              oneOfWords(`f32|f16|bf16|u8|i8`, "f32, f16, bf16, u8 or i8"),
	},
	"iree": {"driver": oneOfWords(`local-sync|local-task`, "local-sync (one thread) or local-task")},
	"litert": {
		"num_threads": oneOfWords(`[1-9][0-9]{0,3}`, "a number from 1 to 9999"),
		"experimental_op_resolver_type": oneOfWords(`AUTO|BUILTIN_WITHOUT_DEFAULT_DELEGATES`,
			"AUTO, or BUILTIN_WITHOUT_DEFAULT_DELEGATES to run without XNNPACK"),
	},
	"onnxruntime-web": {
		"graphOptimizationLevel": oneOfWords(`disabled|basic|extended|layout|all`, "disabled, basic, extended, layout or all"),
		"numThreads":             countSetting,
	},
	"tvm":            {"num_threads": oneOfWords(`[1-9][0-9]{0,3}`, "a number from 1 to 9999")},
	"torch-inductor": {"num_threads": oneOfWords(`[1-9][0-9]{0,3}`, "a number from 1 to 9999")},
	"llama-cpp": {
		"n_threads": oneOfWords(`[1-9][0-9]{0,3}`, "a number from 1 to 9999"),
		"n_ubatch":  oneOfWords(`[1-9][0-9]{0,3}`, "a number from 1 to 9999"),
	},
}

// onnxRuntimeSettings are the options of a session of ONNX Runtime by their names in Python, and
// the session config entries that change how a model is computed.
func onnxRuntimeSettings() map[string]loadSetting {
	settings := map[string]loadSetting{
		"graph_optimization_level": oneOfWords(`disable_all|basic|extended|all`, "disable_all, basic, extended or all"),
		"intra_op_num_threads":     countSetting,
		"inter_op_num_threads":     countSetting,
		"execution_mode":           oneOfWords(`sequential|parallel`, "sequential or parallel"),
		"enable_cpu_mem_arena":     switchSetting,
		"enable_mem_pattern":       switchSetting,
	}
	for _, entry := range []string{
		"session.disable_prepacking", "session.set_denormal_as_zero", "session.disable_quant_qdq",
		"session.disable_double_qdq_remover", "session.enable_quant_qdq_cleanup",
		"session.disable_aot_function_inlining", "session.use_device_allocator_for_initializers",
		"session.intra_op.allow_spinning", "session.inter_op.allow_spinning", "session.force_spinning_stop",
		"session.disable_cpu_ep_fallback", "optimization.enable_gelu_approximation",
		"optimization.enable_cast_chain_elimination", "mlas.enable_gemm_fastmath_arm64_bfloat16",
	} {
		settings[entry] = switchSetting
	}
	for _, entry := range []string{"session.dynamic_block_base", "session.qdq_matmulnbits_accuracy_level"} {
		settings[entry] = countSetting
	}
	settings["session.intra_op_thread_affinities"] = anySetting
	return settings
}

// LoadOptions lists the options that a load profile can set for a runtime, in the order of their
// names; none for a runtime that this program does not know.
func LoadOptions(runtime string) []string { return sortedKeys(loadOptions[runtime]) }

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
