package defaults

import "mlpromote.dev/mlpromote/registry/artifact"

// Runtimes returns the runtime documents of known serving containers. They have only the
// versions that the vendors publish. "mlpromote node describe", run inside a container, reports
// all of its versions. Source: triton-inference-server/server,
// docs/introduction/compatibility.md.
func Runtimes() Source[artifact.Runtime] {
	known := make(Documents[artifact.Runtime])
	add := func(name string, runtimes map[string]string) {
		known[name] = artifact.Runtime{V: 1, Name: name, Runtimes: runtimes}
	}
	const image = "nvcr.io/nvidia/tritonserver:"
	for release, onnxruntime := range tritonONNXRuntime() {
		add(image+release+"-py3", map[string]string{"onnxruntime": onnxruntime})
	}
	for release, v := range tritonTensorRT() {
		add(image+release+"-trtllm-python-py3", map[string]string{"tensorrt": v.tensorrt, "cuda": v.cuda})
	}
	return known
}

// tritonONNXRuntime has the ONNX Runtime version of each Triton release. Releases with an
// unreleased ONNX Runtime, between two versions, are left out.
func tritonONNXRuntime() map[string]string {
	return map[string]string{
		"26.07": "1.27.0", "26.06": "1.24.4", "26.05": "1.24.4", "26.04": "1.24.4", "26.03": "1.24.2", "26.02": "1.24.1",
		"26.01": "1.23.2", "25.12": "1.23.2", "25.11": "1.23.2", "25.10": "1.23.1", "25.09": "1.23.0", "25.07": "1.22.0",
		"25.06": "1.22.0", "25.05": "1.22.0", "25.04": "1.21.0", "25.03": "1.21.0", "25.02": "1.20.1", "25.01": "1.20.1",
		"24.12": "1.20.1", "24.11": "1.19.2", "24.10": "1.19.2", "24.09": "1.19.2", "24.08": "1.18.1", "24.07": "1.18.1",
		"24.06": "1.18.0", "24.05": "1.18.0", "24.04": "1.17.3",
	}
}

type tensorrtAndCUDA struct{ tensorrt, cuda string }

// tritonTensorRT has the TensorRT and CUDA versions of each release's image with TensorRT-LLM.
// Releases whose full versions are not published are left out.
func tritonTensorRT() map[string]tensorrtAndCUDA {
	return map[string]tensorrtAndCUDA{
		"26.07": {"10.14.1.48", "13.1.0.036"}, "26.06": {"10.14.1.48", "13.1.0.036"}, "26.05": {"10.14.1.48", "13.1.0.036"},
		"26.04": {"10.14.1.48", "13.1.0.036"}, "26.03": {"10.14.1.48", "13.1.0.036"}, "26.02": {"10.13.3.9", "13.0.2.006"},
		"26.01": {"10.13.3.9", "13.0.2.006"}, "25.12": {"10.13.3.9", "13.0.2.006"}, "25.11": {"10.13.3.9", "13.0.2.006"},
		"25.10": {"10.11.0.33", "12.9.1.010"}, "25.09": {"10.11.0.33", "12.9.1.010"}, "25.08": {"10.11.0.33", "12.9.0.043"},
		"25.07": {"10.10.0.31", "12.9.0.036"}, "25.06": {"10.10.0.31", "12.9.0.036"}, "25.05": {"10.9.0.34", "12.8.1.012"},
		"25.04": {"10.9.0.34", "12.8.1.012"}, "25.03": {"10.9.0.34", "12.8.1.012"}, "25.02": {"10.8.0.43", "12.8.0.038"},
		"25.01": {"10.8.0.43", "12.8.0.038"}, "24.05": {"10.0.1.6", "12.3.2.001"},
	}
}
