package artifact_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

func TestProviderJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]artifact.Provider{
		`"CPUExecutionProvider"`: {Name: "CPUExecutionProvider"},
		`{"name":"CUDAExecutionProvider","options":{"a":"1","device_id":"0"}}`: {Name: "CUDAExecutionProvider", Options: map[string]string{"device_id": "0", "a": "1"}},
	} {
		var got artifact.Provider
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if written, err := json.Marshal(want); err != nil || string(written) != text {
			t.Errorf("written as %s, %v; want %s", written, err, text)
		}
	}
	for _, text := range []string{
		`{"name":"CUDAExecutionProvider"}`, `{"name":"CUDAExecutionProvider","options":{}}`, `{"name":"CUDAExecutionProvider","options":{"device_id":0}}`,
		`{"name":"CUDAExecutionProvider","options":{"device_id":"0"},"more":1}`, `{"name":"CUDAExecutionProvider","options":{"user_compute_stream":"140"}}`, `1`, `[]`,
	} {
		var got artifact.Provider
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s was read as %+v", text, got)
		}
	}
}

func TestProviderValidate(t *testing.T) {
	t.Parallel()
	many := make(map[string]string)
	for i := range 33 {
		many[fmt.Sprintf("o%d", i)] = "1"
	}
	const openvino, cpu = "OpenVINOExecutionProvider", "CPUExecutionProvider"
	for name, c := range map[string]struct {
		name    string
		options map[string]string
		want    string // part of the error; empty for none
	}{
		"a name":            {cpu, nil, ""},
		"options":           {openvino, map[string]string{"device_type": "CPU", "num_of_threads": "4", "load_config": `{"CPU": {"NUM_STREAMS": "1"}}`}, ""},
		"a short name":      {"CPU", nil, "want a name that ONNX Runtime uses, such as CPUExecutionProvider"},
		"of the CPU":        {cpu, map[string]string{"threads": "4"}, "CPUExecutionProvider has option threads, but takes no options: remove them"},
		"too many":          {openvino, many, "has 33 options: want at most 32"},
		"an odd key":        {openvino, map[string]string{"num threads": "4"}, `option "num threads": want a name of letters`},
		"nothing":           {openvino, map[string]string{"device_type": ""}, "want 1 to 256 printable characters"},
		"a long value":      {openvino, map[string]string{"device_type": strings.Repeat("x", 257)}, "want 1 to 256 printable characters"},
		"lines":             {openvino, map[string]string{"device_type": "CPU\nGPU"}, "want 1 to 256 printable characters"},
		"a file":            {openvino, map[string]string{"cache_dir": "/tmp"}, `option cache_dir is "/tmp", which is a file path`},
		"a file on Windows": {openvino, map[string]string{"cache_dir": `c:\tmp`}, "which is a file path"},
		"an address":        {"CUDAExecutionProvider", map[string]string{"gpu_external_alloc": "4096"}, "option gpu_external_alloc is a memory address or code of one process"},
		"a library by name": {"TensorrtExecutionProvider", map[string]string{"trt_extra_plugin_lib_paths": "evil.so"}, "is a memory address or code"},
		"an OpenCL context": {openvino, map[string]string{"context": "0x1234"}, "is a memory address or code"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := artifact.Provider{Name: c.name, Options: c.options}.Validate()
			if (err == nil) != (c.want == "") || err != nil && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
