//go:build cgo

package ort

import (
	"errors"
	"strings"

	rt "github.com/yalue/onnxruntime_go"

	"mlpromote.dev/mlpromote/pipeline/toolchain/child"
)

var levels = map[string]rt.GraphOptimizationLevel{
	"":            rt.GraphOptimizationLevelDisableAll,
	"disable_all": rt.GraphOptimizationLevelDisableAll,
	"basic":       rt.GraphOptimizationLevelEnableBasic,
	"extended":    rt.GraphOptimizationLevelEnableExtended,
	"all":         rt.GraphOptimizationLevelEnableAll,
}

// newOptions are the settings of a session: operators one after the other, each on
// that many threads. The caller destroys them.
func newOptions(level string, threads int) (*rt.SessionOptions, error) {
	value, ok := levels[level]
	if !ok {
		return nil, child.Errorf(child.BadInput, "level %q: want disable_all, basic, extended or all", level)
	}
	options, err := rt.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		options.SetGraphOptimizationLevel(value),
		options.SetExecutionMode(rt.ExecutionModeSequential),
		options.SetIntraOpNumThreads(threads),
		options.SetInterOpNumThreads(1),
	)
	if err != nil {
		return nil, release(options, err)
	}
	return options, nil
}

// release destroys options after their use, which ended with err.
func release(options *rt.SessionOptions, err error) error {
	return errors.Join(err, options.Destroy())
}

// loadError says why a model does not load, without the path where it lay.
func loadError(name, path string, err error) error {
	return fault("model "+name, strings.TrimPrefix(strings.ReplaceAll(err.Error(), path, name), "Error loading temporary session: "))
}

// fault says whose fault an error of the library is. It gives texts, no codes.
func fault(subject, text string) error {
	for _, known := range []struct {
		part string
		code child.ErrorCode
	}{
		{"bad_alloc", child.Limit},
		{"Failed to allocate memory", child.Limit},
		{"is not a registered function/op", child.UnsupportedOp},
		{"Could not find an implementation", child.UnsupportedOp},
		{"Unsupported model IR version", child.UnsupportedFormat},
		{"opset", child.UnsupportedFormat},
		{"rotobuf parsing failed", child.BadInput},
		{"Invalid model", child.BadInput},
		{"This is an invalid model", child.BadInput},
		{"Load model", child.BadInput},
		{"Type Error", child.BadInput},
	} {
		if strings.Contains(text, known.part) {
			return child.Errorf(known.code, "%s: %s", subject, text)
		}
	}
	return child.Errorf(child.ToolFailed, "%s: %s", subject, text)
}
