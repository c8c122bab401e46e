package manifest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
)

// Main does the request on stdin with the tool that the request names, and returns the exit
// status of the process.
func Main(ctx context.Context, stdin io.Reader, stderr io.Writer) int {
	return driverproc.Serve(ctx, stdin, stderr, func(ctx context.Context, r driverproc.Request) (any, error) {
		return compile(ctx, r, stderr)
	})
}

// options of VerbCompile.
type options struct {
	Arguments []string `json:"arguments"`
	Outputs   []string `json:"outputs"`
	Licence   string   `json:"licence"`
	Discards  []string `json:"discards"`
	Tuning    string   `json:"tuning"` // empty: the tool has no tuning file
	From      struct {
		File string `json:"file"` // empty: the tool takes ONNX
	} `json:"from"`
}

// takes reports whether the tool takes the model of this name.
func (o options) takes(name string) bool {
	if o.From.File != "" {
		return name == o.From.File
	}
	return strings.HasSuffix(name, ".onnx")
}

func compile(ctx context.Context, r driverproc.Request, stderr io.Writer) (any, error) {
	o, err := optionsOf(r)
	if err != nil {
		return nil, err
	}
	model := slices.IndexFunc(r.Inputs, func(in driverproc.RequestInput) bool {
		return in.Role == toolchain.RoleModel && o.takes(in.Name)
	})
	if model < 0 {
		return nil, driverproc.Errorf(driverproc.BadInput, "no input of role model is %s", cmp.Or(o.From.File, "an .onnx file"))
	}
	tuning, err := o.warm(r)
	if err != nil {
		return nil, err
	}
	replacer := strings.NewReplacer("{model}", r.Inputs[model].Path, "{out}", r.OutDir, "{tuning}", tuning)
	arguments := make([]string, len(o.Arguments))
	for i, a := range o.Arguments {
		arguments[i] = replacer.Replace(a)
	}
	cmd := exec.CommandContext(ctx, r.Library, arguments...)
	cmd.Stdout, cmd.Stderr = stderr, stderr
	cmd.Env = os.Environ() // package driverproc has created it
	var ended *exec.ExitError
	switch err := cmd.Run(); {
	case errors.As(err, &ended):
		return nil, driverproc.Errorf(driverproc.ToolFailed, "%s ended with %s", r.Library, ended.ProcessState)
	case err != nil:
		return nil, driverproc.Errorf(driverproc.Unavailable, "%v", err)
	}
	return map[string]any{"licence": o.Licence}, outputs(r.OutDir, o)
}

// warm copies the tool's earlier tuning file to where the tool will look for it, and returns
// the path. In the first build there is no such file.
func (o options) warm(r driverproc.Request) (string, error) {
	if o.Tuning == "" {
		return "", nil
	}
	path := filepath.Join(r.OutDir, toolchain.TuningFolder, filepath.FromSlash(o.Tuning))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return "", err
	}
	for _, in := range r.Inputs {
		if in.Role != toolchain.RoleTuning || in.Name != o.Tuning {
			continue
		}
		text, err := os.ReadFile(in.Path)
		if err != nil {
			return "", err
		}
		return path, os.WriteFile(path, text, 0o666)
	}
	return path, nil
}

func optionsOf(r driverproc.Request) (options, error) {
	var o options
	if r.Verb != toolchain.VerbCompile {
		return o, driverproc.Errorf(driverproc.BadInput, "verb %s: a tool with a manifest has compile", r.Verb)
	}
	text, err := json.Marshal(r.Options)
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil || len(o.Outputs) == 0 {
		return o, driverproc.Errorf(driverproc.BadInput, "options: want arguments and outputs: %v", err)
	}
	return o, nil
}

// outputs checks that the tool left exactly the files that its manifest lists, after it has
// removed those that are no part of an engine.
func outputs(dir string, o options) error {
	for _, name := range o.Discards {
		if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	files, err := toolchain.Collect(dir)
	if err != nil {
		return driverproc.Errorf(driverproc.ToolFailed, "%v", err)
	}
	var left []string
	promised := o.Outputs
	for _, f := range files {
		if o.Tuning != "" && f.Name == toolchain.TuningFolder+"/"+o.Tuning {
			continue
		}
		left = append(left, f.Name)
		if !slices.Contains(promised, f.Name) {
			return driverproc.Errorf(driverproc.ToolFailed, "the tool left %s, which its manifest does not list", f.Name)
		}
	}
	for _, name := range promised {
		if !slices.Contains(left, name) {
			return driverproc.Errorf(driverproc.ToolFailed, "the tool did not leave %s, which its manifest lists", name)
		}
	}
	return nil
}
