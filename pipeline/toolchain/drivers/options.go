package drivers

import "mlpromote.dev/mlpromote/registry/toolchains"

// count is a number of threads, of requests or of something else, where 0 leaves it to the runtime.
func count() toolchains.Setting {
	return toolchains.Setting{Max: 9999, Text: "a number from 0 to 9999"}
}

// positive is a number that has no default.
func positive() toolchains.Setting {
	return toolchains.Setting{Min: 1, Max: 9999, Text: "a number from 1 to 9999"}
}

func words(text string, words ...string) toolchains.Setting {
	return toolchains.Setting{Words: words, Text: text}
}

// onnxRuntimeOptions are the options of a session of ONNX Runtime by their names in Python, and the session config entries that
// change how a model is computed (onnxruntime_session_options_config_keys.h).
func onnxRuntimeOptions() map[string]toolchains.Setting {
	onOff := words("0 or 1", "0", "1")
	options := map[string]toolchains.Setting{
		"graph_optimization_level":           words("disable_all, basic, extended or all", "disable_all", "basic", "extended", "all"),
		"intra_op_num_threads":               count(),
		"inter_op_num_threads":               count(),
		"execution_mode":                     words("sequential or parallel", "sequential", "parallel"),
		"enable_cpu_mem_arena":               onOff,
		"enable_mem_pattern":                 onOff,
		"session.intra_op_thread_affinities": {Text: "a value that the runtime takes"},
	}
	for _, entry := range []string{
		"session.disable_prepacking", "session.set_denormal_as_zero", "session.disable_quant_qdq",
		"session.disable_double_qdq_remover", "session.enable_quant_qdq_cleanup",
		"session.disable_aot_function_inlining", "session.use_device_allocator_for_initializers",
		"session.intra_op.allow_spinning", "session.inter_op.allow_spinning", "session.force_spinning_stop",
		"session.disable_cpu_ep_fallback", "optimization.enable_gelu_approximation",
		"optimization.enable_cast_chain_elimination", "mlas.enable_gemm_fastmath_arm64_bfloat16",
	} {
		options[entry] = onOff
	}
	for _, entry := range []string{"session.dynamic_block_base", "session.qdq_matmulnbits_accuracy_level"} {
		options[entry] = count()
	}
	return options
}

// openvinoOptions are properties of OpenVINO (openvino.properties).
func openvinoOptions() map[string]toolchains.Setting {
	yesNo := words("YES or NO", "YES", "NO")
	return map[string]toolchains.Setting{
		"INFERENCE_PRECISION_HINT":        words("f32, f16 or bf16", "f32", "f16", "bf16"),
		"EXECUTION_MODE_HINT":             words("ACCURACY or PERFORMANCE", "ACCURACY", "PERFORMANCE"),
		"PERFORMANCE_HINT":                words("LATENCY, THROUGHPUT or CUMULATIVE_THROUGHPUT", "LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT"),
		"PERFORMANCE_HINT_NUM_REQUESTS":   count(),
		"NUM_STREAMS":                     {Words: []string{"AUTO", "NUMA"}, Min: 1, Max: 9999, Text: "AUTO, NUMA or a number"},
		"INFERENCE_NUM_THREADS":           count(),
		"ENABLE_CPU_PINNING":              yesNo,
		"ENABLE_HYPER_THREADING":          yesNo,
		"SCHEDULING_CORE_TYPE":            words("ANY_CORE, PCORE_ONLY or ECORE_ONLY", "ANY_CORE", "PCORE_ONLY", "ECORE_ONLY"),
		"DYNAMIC_QUANTIZATION_GROUP_SIZE": {Max: 999999999, Text: "a number"},
		"KV_CACHE_PRECISION":              words("f32, f16, bf16, u8 or i8", "f32", "f16", "bf16", "u8", "i8"),
	}
}
