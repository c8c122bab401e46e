package manifest

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/registry/tempdir"
)

// Run is the program that runs the engines of a tool, or the model server. The program speaks the driver protocol (docs/reference/driver.md) and has the verbs
// probe and run. Its file, the files that it consists of and the packages of its Python are pinned by digest in reports.
type Run struct {
	Through   string   `yaml:"through" doc:"Name of a model server that runs the engines, in place of program: servers/NAME.yaml beside this file describes it"`
	Version   string   `yaml:"version" doc:"Version of the runtime that the server brings, which targets ask for; with through alone"`
	Program   string   `yaml:"program" doc:"Program that answers the verbs probe and run of the driver protocol: an absolute path, or a name on PATH. With python it is a script"`
	Python    string   `yaml:"python" doc:"Python that runs the program, by path or by a name on PATH. Reports list its packages"`
	Arguments []string `yaml:"arguments" doc:"Arguments of the program"`
	Folder    string   `yaml:"folder" doc:"Folder that the program may see, and that inputs start from, with the program in it or below. Default: the folder of the program"`
	Inputs    []string `yaml:"inputs" doc:"Files that the program consists of, as inputs of the compiler. Default: all files in the folder"`
}

func (r Run) check(doc *strictyaml.Document) {
	if r.Through != "" {
		if r.Program != "" || r.Python != "" || r.Folder != "" || len(r.Arguments)+len(r.Inputs) > 0 {
			doc.At("run", "through").Problemf("through: a model server runs the engines, so there is no program, python, arguments, folder or inputs")
		}
		if (artifact.Constraint{Exact: r.Version}).Validate() != nil {
			doc.At("run", "version").Problemf("version %q: want that of the runtime which the server brings, as numbers separated by dots", r.Version)
		}
		if !namePattern.MatchString(r.Through) {
			doc.At("run", "through").Problemf("through %q: want the name of a server", r.Through)
		}
		return
	}
	switch {
	case r.Version != "":
		doc.At("run", "version").Problemf("version: a program answers probe with its version")
	case r.Program == "":
		doc.At("run", "program").Problemf("program: want the program that runs engines, or through for a model server")
	case filepath.IsAbs(r.Program):
	case r.Python != "":
		doc.At("run", "program").Problemf("program %q: want the absolute path of a script for Python", r.Program)
	case strings.ContainsRune(r.Program, '/'):
		doc.At("run", "program").Problemf("program %q: want a name, which is looked up on PATH, or an absolute path", r.Program)
	}
	if strings.ContainsRune(r.Python, '/') && !filepath.IsAbs(r.Python) {
		doc.At("run", "python").Problemf("python %q: want a name, which is looked up on PATH, or an absolute path", r.Python)
	}
	if r.Folder != "" && !filepath.IsAbs(r.Folder) {
		doc.At("run", "folder").Problemf("folder %q: want an absolute path", r.Folder)
	}
	for i, pattern := range r.Inputs {
		checkInput(doc.At("run", "inputs", i), pattern)
	}
}

// probeTime is how long a runner may take to answer probe: it loads its runtime.
const probeTime = 2 * time.Minute

// NewRunner returns the driver that runs the engines of a manifest. It reads the files of the program, and asks it for the
// version of its runtime, in the sandbox of jobs. Errors: CodeUnavailable if the program or its Python does not exist, does not
// answer or names no version; CodeInvalid for a manifest without run, for inputs that are missing or too many, and if the
// program could see private folders.
func NewRunner(ctx context.Context, m Manifest, o Options) (toolchain.Driver, error) {
	if m.Run == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: its manifest has no run, so nothing runs its engines", m.Name)
	}
	r, err := m.Run.open(ctx, m.Name, o)
	if err != nil {
		return nil, err
	}
	r.identity.Name, r.identity.Adopted = m.Name, true
	code := [][]byte{m.text}
	if m.Run.Python != "" {
		ours := modules()
		for _, name := range slices.Sorted(maps.Keys(ours)) {
			code = append(code, []byte(name), ours[name])
		}
	}
	r.identity.Code = driverproc.CodeDigest(code...)
	version, err := r.probe(ctx)
	if err != nil {
		return nil, err
	}
	r.identity.Version, r.identity.Versions[m.Name] = version, version
	// What computes is the runtime: a mistake in the program around it, once mended, must not count as another runtime's failure.
	r.identity.LibraryDigest, err = registry.CanonicalDigest(map[string]any{"name": m.Name, "version": version, "packages": r.packages})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// runner is the driver of a [Run].
type runner struct {
	toolchain.Driver
	made     *made
	packages registry.Digest // of its Python; empty without one
	identity toolchain.Identity
}

// open finds the program and what it consists of.
func (r Run) open(ctx context.Context, name string, o Options) (runner, error) {
	path, err := exec.LookPath(r.Program)
	if r.Python != "" {
		path, err = r.Program, nil // a script need not be executable
	}
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return runner{}, registry.Lastingf(registry.CodeUnavailable, "%s: run: %w", name, err)
	}
	found, err := consists{r.Folder, r.Inputs}.examine(path, o.Private)
	if err != nil {
		code := registry.CodeUnavailable
		if registry.HasCode(err, registry.CodeInvalid) {
			code = registry.CodeInvalid
		}
		return runner{}, registry.Errorf(code, "%s: run: %w", name, err)
	}
	files, err := found.digest()
	if err != nil {
		return runner{}, err
	}
	opened := runner{made: found, identity: toolchain.Identity{Versions: make(map[string]string)}}
	lock := map[string]any{"files": files, "arguments": r.Arguments}
	if r.Python == "" {
		program := driverproc.Program{Name: name, Path: path, Args: append([]string{path}, r.Arguments...), Reads: found.shown}
		opened.Driver = executable{program, o.Budget}
	} else {
		record, err := install.Examine(ctx, name, r.Python)
		if err != nil {
			return runner{}, err
		}
		maps.Copy(opened.identity.Versions, record.Versions)
		opened.packages = record.Lock
		lock["python"], opened.identity.Versions["python"] = record.Lock, record.Python
		program := script.Program{
			Interpreter: record.Interpreter(), Flags: []string{"-s", "-B"}, Main: "start.py", Args: append([]string{path}, r.Arguments...),
			Folders: slices.Concat(record.Folders(), found.shown), Code: modules(), Identity: toolchain.Identity{Name: name},
		}
		opened.Driver = script.New(func() (script.Program, error) { return program, nil }, o.Budget)
	}
	opened.identity.Lock, err = registry.CanonicalDigest(lock)
	return opened, err
}

// executable is a program that speaks the driver protocol by itself.
type executable struct {
	program driverproc.Program
	budget  driverproc.Budget
}

func (e executable) Identity(context.Context) (toolchain.Identity, error) {
	return toolchain.Identity{Name: e.program.Name}, nil
}

func (e executable) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	return driverproc.Do(ctx, e.program, e.budget, job, outDir)
}

//go:embed python/*.py
var files embed.FS

// modules are what a program in Python can import from us, by file name.
func modules() map[string][]byte {
	all := drivers.Common()
	for _, name := range []string{"mlpromote_runner.py", "start.py"} {
		all[name], _ = files.ReadFile("python/" + name) // it is embedded
	}
	return all
}

// probe asks the program for the version of its runtime.
func (r runner) probe(ctx context.Context) (version string, err error) {
	temp, err := tempdir.New("probe")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, temp.Remove()) }()
	job := toolchain.Job{Verb: toolchain.VerbProbe, Budget: toolchain.Budget{Time: probeTime}}
	outcome, err := r.Driver.Do(ctx, job, filepath.Join(temp.Path, "out"))
	if err != nil {
		return "", registry.WithHint(registry.Lastingf(registry.CodeUnavailable, "the runner of %s does not answer the verb probe: %w", r.identity.Name, err),
			"mlpromote toolchain check MANIFEST shows what it answers to each verb")
	}
	var answer toolchain.ProbeResult
	if err := json.Unmarshal(outcome.Result, &answer); err != nil {
		return "", registry.Lastingf(registry.CodeUnavailable, "the runner of %s: the result of probe: %w", r.identity.Name, err)
	}
	version = answer.Tool[r.identity.Name]
	if (artifact.Constraint{Exact: version}).Validate() != nil {
		return "", registry.Lastingf(registry.CodeUnavailable,
			"the runner of %s answers probe with the versions %v: want {%q: VERSION}, numbers separated by dots", r.identity.Name, answer.Tool, r.identity.Name)
	}
	return version, nil
}

func (r runner) Identity(context.Context) (toolchain.Identity, error) { return r.identity, nil }

// Do runs engines. A runner compiles nothing.
func (r runner) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	if job.Verb != toolchain.VerbRun && job.Verb != toolchain.VerbProbe {
		return toolchain.Outcome{}, registry.Lastingf(registry.CodeInvalid, "the runner of %s runs engines, and has no verb %s", r.identity.Name, job.Verb)
	}
	outcome, err := r.Driver.Do(ctx, job, outDir)
	if file := r.made.changed(); err == nil && file != "" {
		return toolchain.Outcome{}, registry.Errorf(registry.CodeUnavailable,
			"the runner of %s: %s changed while it ran, so the report could not name it: verify again", r.identity.Name, file)
	}
	return outcome, err
}
