package drivers

import (
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// known says of each program what its files do not.
func known() []Source {
	return []Source{
		{
			Name: "onnxruntime", Package: "onnxruntime", Library: "onnxruntime/capi/libonnxruntime.so.*", Python: "3.11", Quantizes: true,
			Profile: toolchain.Profile{
				Name: "onnxruntime", Format: "onnx", Entry: "model.onnx",
				Level:          "disable_all", // an engine is optimized when it is built, never when it is loaded
				CompileOptions: onnxruntimeOptions,
			},
		},
		{
			Name: "openvino", Package: "openvino", Python: "3.11",
			Profile: toolchain.Profile{
				Name: "openvino", Format: "openvino-ir", Entry: "model.xml",
				CompileOptions: noOptions, // the graph is kept as it is: OpenVINO chooses its kernels when it loads it
			},
		},
	}
}

func noOptions(registry.Target, string) (map[string]any, error) { return map[string]any{}, nil }

// onnxruntimeOptions go as far as ONNX Runtime's optimizer goes without choosing kernels
// of the CPU that it runs on, so that engines of one CPU family share their file.
func onnxruntimeOptions(registry.Target, string) (map[string]any, error) {
	return map[string]any{"level": "extended"}, nil
}
