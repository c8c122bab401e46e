//go:build cgo

package ort

import (
	"context"
	"io"
	"path/filepath"
	"strings"

	rt "github.com/yalue/onnxruntime_go"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
)

// Main is the child process: it does one request of mlpromote.driver/v1 and returns the exit
// status. The shared library stays loaded until the process ends.
func Main(ctx context.Context, stdin io.Reader, stderr io.Writer) int {
	return driverproc.Serve(ctx, stdin, stderr, handle)
}

func handle(ctx context.Context, r driverproc.Request) (any, error) {
	verbs := map[toolchain.Verb]func(context.Context, driverproc.Request) (any, error){
		toolchain.VerbProbe: probe, toolchain.VerbCompile: compile, toolchain.VerbRun: run,
	}
	do, ok := verbs[r.Verb]
	if !ok {
		return nil, driverproc.Errorf(driverproc.BadInput, "%s does not %s: it has probe, compile and run", Name, r.Verb)
	}
	rt.SetSharedLibraryPath(r.Library)
	if err := rt.InitializeEnvironment(rt.WithLogLevelError()); err != nil {
		return nil, driverproc.Errorf(driverproc.Unavailable, "load %s: %v: run `mlpromote toolchain install %s`", r.Library, err, Name)
	}
	return do(ctx, r)
}

func probe(_ context.Context, r driverproc.Request) (any, error) {
	result := toolchain.ProbeResult{Tool: map[string]string{Name: rt.GetVersion()}}
	for _, in := range graphs(r) {
		options, err := settings{load: fixed("disable_all", 1), operators: operators(r)}.open()
		if err != nil {
			return nil, err
		}
		inputs, outputs, err := rt.GetInputOutputInfoWithOptions(in.Path, options)
		if err = release(options, err); err != nil {
			return nil, loadError(in.Name, in.Path, err)
		}
		result.Models = append(result.Models,
			toolchain.ModelInterface{Name: in.Name, Inputs: describe(inputs), Outputs: describe(outputs)})
	}
	return result, nil
}

// compile writes model.onnx, the graph after optimization, and next to it model.onnx.data if
// the model came with external data. It refuses level "all", which adapts the graph to the
// processor of the build.
func compile(_ context.Context, r driverproc.Request) (any, error) {
	level, err := compileLevel(r.Options)
	if err != nil {
		return nil, err
	}
	models := graphs(r)
	if len(models) != 1 {
		return nil, driverproc.Errorf(driverproc.BadInput,
			"%d inputs of role model are graphs, expected one that ends in .onnx", len(models))
	}
	options, err := settings{load: fixed(level, 1), operators: operators(r)}.open()
	if err != nil {
		return nil, err
	}
	err = options.SetOptimizedModelFilePath(filepath.Join(r.OutDir, "model.onnx"))
	if err == nil && len(inputs(r, toolchain.RoleModel)) > 1 {
		err = options.AddSessionConfigEntry("session.optimized_model_external_initializers_file_name", "model.onnx.data")
	}
	if err == nil {
		_, _, err = rt.GetInputOutputInfoWithOptions(models[0].Path, options)
	}
	if err = release(options, err); err != nil {
		return nil, loadError(models[0].Name, models[0].Path, err)
	}
	return map[string]string{"level": level}, nil
}

func compileLevel(options map[string]any) (string, error) {
	level := "extended"
	for name, value := range options {
		text, _ := value.(string)
		if name != "level" {
			return "", driverproc.Errorf(driverproc.BadInput, "option %q: compile has level", name)
		}
		level = text
	}
	switch level {
	case "basic", "extended":
		return level, nil
	case "all":
		return "", driverproc.Errorf(driverproc.BadInput,
			"option level is all, which adapts the graph to the processor of the build: want basic or extended")
	}
	return "", driverproc.Errorf(driverproc.BadInput, "option level is %q: want basic or extended", level)
}

// operators returns the operator libraries that the models of a job need.
func operators(r driverproc.Request) []string {
	var paths []string
	for _, in := range inputs(r, toolchain.RoleOperators) {
		paths = append(paths, in.Path)
	}
	return paths
}

// graphs returns the models among the inputs: the only file, or those that end in .onnx.
func graphs(r driverproc.Request) []driverproc.RequestInput {
	files := inputs(r, toolchain.RoleModel)
	if len(files) == 1 {
		return files
	}
	var found []driverproc.RequestInput
	for _, in := range files {
		if strings.HasSuffix(in.Name, ".onnx") {
			found = append(found, in)
		}
	}
	return found
}
