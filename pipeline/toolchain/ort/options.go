//go:build cgo

package ort

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	rt "github.com/yalue/onnxruntime_go"

	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/registry/artifact"
)

var levels = map[string]rt.GraphOptimizationLevel{
	"disable_all": rt.GraphOptimizationLevelDisableAll,
	"basic":       rt.GraphOptimizationLevelEnableBasic,
	"extended":    rt.GraphOptimizationLevelEnableExtended,
	"all":         rt.GraphOptimizationLevelEnableAll,
}

// settings are the options of a session that differ between jobs.
type settings struct {
	load      map[string]string   // options by the names of a load profile; others are the library's own
	providers []artifact.Provider // execution providers, the preferred one first; that of the CPU is always last
	operators []string            // paths of operator libraries that the model needs
}

// fixed are the options of a session that gives the same bytes on machines of one kind: operators
// run one after the other, with so many threads within one.
func fixed(level string, threads int) map[string]string {
	return map[string]string{
		"graph_optimization_level": cmp.Or(level, "disable_all"), "execution_mode": "sequential",
		"intra_op_num_threads": strconv.Itoa(max(threads, 1)), "inter_op_num_threads": "1",
	}
}

// open returns the options of a session. The caller destroys them.
func (s settings) open() (*rt.SessionOptions, error) {
	options, err := rt.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	for name, value := range s.load {
		err = errors.Join(err, setOption(options, name, value))
	}
	for _, path := range s.operators {
		if failed := options.RegisterCustomOpsLibrary(path); failed != nil {
			err = errors.Join(err, driverproc.Errorf(driverproc.BadInput, "operator library %s does not load: %s",
				filepath.Base(path), strings.ReplaceAll(failed.Error(), path, filepath.Base(path))))
		}
	}
	if err != nil {
		return nil, release(options, err)
	}
	for _, p := range s.providers {
		// A provider that is missing here is skipped, as ONNX Runtime does: the result reports
		// which provider runs the engine. An existing provider must accept the options.
		if failed := prefer(options, p); failed != nil && len(p.Options) > 0 && !absent(failed.Error()) {
			return nil, release(options, driverproc.Errorf(driverproc.BadInput,
				"execution provider %s does not accept its options: %s", p, failed))
		}
	}
	return options, nil
}

// setOption sets an option of a load profile. Other names than those of Python's SessionOptions
// are session config entries.
func setOption(options *rt.SessionOptions, name, value string) error {
	number, failed := strconv.Atoi(value)
	switch name {
	case "graph_optimization_level":
		level, ok := levels[value]
		if !ok {
			return driverproc.Errorf(driverproc.BadInput, "level %q: want disable_all, basic, extended or all", value)
		}
		return options.SetGraphOptimizationLevel(level)
	case "execution_mode":
		if value == "parallel" {
			return options.SetExecutionMode(rt.ExecutionModeParallel)
		}
		return options.SetExecutionMode(rt.ExecutionModeSequential)
	case "intra_op_num_threads", "inter_op_num_threads", "enable_cpu_mem_arena", "enable_mem_pattern":
		if failed != nil {
			return driverproc.Errorf(driverproc.BadInput, "option %s is %q: want a number", name, value)
		}
	}
	switch name {
	case "intra_op_num_threads":
		return options.SetIntraOpNumThreads(number)
	case "inter_op_num_threads":
		return options.SetInterOpNumThreads(number)
	case "enable_cpu_mem_arena":
		return options.SetCpuMemArena(number != 0)
	case "enable_mem_pattern":
		return options.SetMemPattern(number != 0)
	}
	if !slices.Contains(artifact.LoadOptions(Name), name) {
		return driverproc.Errorf(driverproc.BadInput, "option %s: want some of %s", name, strings.Join(artifact.LoadOptions(Name), ", "))
	}
	return options.AddSessionConfigEntry(name, value)
}

// prefer appends an execution provider to the list.
func prefer(options *rt.SessionOptions, p artifact.Provider) error {
	switch p.Name {
	case "CPUExecutionProvider":
		return nil // it always exists, as the last
	case "CUDAExecutionProvider":
		cuda, err := rt.NewCUDAProviderOptions()
		if err != nil {
			return err
		}
		if err = cuda.Update(p.Options); err == nil {
			err = options.AppendExecutionProviderCUDA(cuda)
		}
		return errors.Join(err, cuda.Destroy())
	case "TensorrtExecutionProvider":
		tensorrt, err := rt.NewTensorRTProviderOptions()
		if err != nil {
			return err
		}
		if err = tensorrt.Update(p.Options); err == nil {
			err = options.AppendExecutionProviderTensorRT(tensorrt)
		}
		return errors.Join(err, tensorrt.Destroy())
	}
	return options.AppendExecutionProvider(strings.TrimSuffix(p.Name, "ExecutionProvider"), p.Options)
}

// absent reports whether an error of the library says that it does not have a provider, or that the
// machine does not have its hardware or libraries. ONNX Runtime has no error code for this.
func absent(text string) bool {
	for _, part := range []string{"in this build", "Failed to load shared library", "Unknown provider name"} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// release destroys options after their use, which ended with err.
func release(options *rt.SessionOptions, err error) error {
	return errors.Join(err, options.Destroy())
}

// loadError returns why a model does not load, without the model's temporary path.
func loadError(name, path string, err error) error {
	text := strings.TrimPrefix(strings.ReplaceAll(err.Error(), path, name), "Error loading temporary session: ")
	return driverproc.Errorf(codeOf(text), "model %s: %s", name, text)
}

// codeOf classifies an error of the library by its text, because the library has no codes.
func codeOf(text string) driverproc.ErrorCode {
	for _, known := range []struct {
		part string
		code driverproc.ErrorCode
	}{
		{"bad_alloc", driverproc.Limit},
		{"Failed to allocate memory", driverproc.Limit},
		{"is not a registered function/op", driverproc.UnsupportedOp},
		{"Could not find an implementation", driverproc.UnsupportedOp},
		{"Unsupported model IR version", driverproc.UnsupportedFormat},
		{"opset", driverproc.UnsupportedFormat},
		{"rotobuf parsing failed", driverproc.BadInput},
		{"Invalid model", driverproc.BadInput},
		{"This is an invalid model", driverproc.BadInput},
		{"Load model", driverproc.BadInput},
		{"Type Error", driverproc.BadInput},
		{"out of data bounds", driverproc.BadInput},                 // Gather
		{"invalid index found", driverproc.BadInput},                // GatherND
		{"Out of range value in index tensor", driverproc.BadInput}, // GatherElements
	} {
		if strings.Contains(text, known.part) {
			return known.code
		}
	}
	return driverproc.ToolFailed
}
