package manifest

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// Manifest describes a compiler with a command line.
type Manifest struct {
	Name       string  `yaml:"name,required" doc:"Name of the toolchain, and of the runtime that a node must have"`
	Licence    string  `yaml:"licence,required" doc:"Licence under which the tool is used"`
	Executable string  `yaml:"executable,required" doc:"Program, by name or absolute path"`
	Version    Version `yaml:"version,required" doc:"How to get its version"`
	Compile    Compile `yaml:"compile,required" doc:"How it compiles"`
	Engine     Engine  `yaml:"engine,required" doc:"Properties of its engines"`
	Run        *Run    `yaml:"run" doc:"Program that runs its engines, so that verify works; without it, other means must verify them"`
	Tuning     string  `yaml:"tuning" doc:"Name of the file in which the tool keeps tuning results for a target, such as timing.cache; {tuning} is its path"`
	// Folder is empty for the folder of the executable.
	Folder string `yaml:"folder" doc:"Folder that the tool may see, and that inputs start from, with the executable in it or below: that of a Python environment, for example. Default: the folder of the executable"`
	// If Inputs is nil, it means every file in the folder.
	Inputs []string `yaml:"inputs" doc:"Files that the tool consists of: patterns relative to the folder, absolute ones for system software; a folder means all files in it. Default: all files in the folder"`
	TiedTo []string `yaml:"tied_to" doc:"Fields that a target must set, because an engine works only on that hardware and software"`

	// Values has, by field, what the tool calls its values.
	Values map[string]map[string]string `yaml:"values" doc:"For fields in tied_to, what the tool calls each value, as in {cpu.arch: {amd64: x86_64}}; a target with another value is refused"`

	text []byte // the file, for the driver's identity
}

// Version is how to get the version of a tool: by asking it, or, if it prints none, by Stated.
type Version struct {
	Stated    string   `yaml:"stated" doc:"Version of a tool that prints none. Its files are compared by digest all the same"`
	Arguments []string `yaml:"arguments" doc:"Arguments with which the program prints its version"`
	Pattern   string   `yaml:"pattern" doc:"Regular expression (RE2) whose groups, joined by dots, are the version: numbers separated by dots"`
}

// Compile is how to call a tool. In arguments, {model} is replaced by the path of the ONNX
// file, or of the file that From makes of it, {out} by that of the folder for the engine, and a name of TiedTo in braces by that
// field of the target, such as {accelerator.arch}. {tuning} is the path of the file Tuning. The
// tool reads it if it exists, and leaves it for the next build.
type Compile struct {
	From      *From    `yaml:"from" doc:"What compiles the model first, for a tool that takes no ONNX"`
	Arguments []string `yaml:"arguments,required" doc:"Arguments of the program; {model}, {out} and fields of the target in braces"`
	Device    bool     `yaml:"device" doc:"The program needs the accelerator of the target, as trtexec does: it compiles only where there is one, and may use it. Default: false"`
}

// From is the toolchain that compiles the model before the tool: one of this project, or of another
// manifest, which itself takes ONNX.
type From struct {
	Toolchain string `yaml:"toolchain,required" doc:"Name of the toolchain"`
	Form      string `yaml:"form" doc:"Which of its forms; default: the first"`
}

// Engine describes the engines of a tool.
type Engine struct {
	Format       string   `yaml:"format,required" doc:"Name of the format, such as tensorrt-plan"`
	Entry        string   `yaml:"entry,required" doc:"File that the runtime loads"`
	Outputs      []string `yaml:"outputs,required" doc:"All files of an engine"`
	NativeCode   bool     `yaml:"native_code" doc:"Engines hold machine code"`
	Discards     []string `yaml:"discards" doc:"Other files that the tool may leave below {out}, such as a log"`
	ExactRuntime bool     `yaml:"exact_runtime" doc:"Engines need exactly this version of the runtime"`
}

// namePattern matches names of toolchains: a name is that of a runtime and part of file names.
var namePattern = regexp.MustCompile(`^[a-z0-9]+([_-][a-z0-9]+)*$`)

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// Load reads a manifest. Errors: CodeInvalid with line and column.
func Load(path string) (Manifest, error) {
	data, err := strictyaml.ReadFile(path)
	if err != nil {
		return Manifest{}, err
	}
	return Parse(path, data)
}

// Parse parses a manifest. Messages call it name. Errors: CodeInvalid.
func Parse(name string, data []byte) (Manifest, error) {
	m := Manifest{text: data}
	doc, err := strictyaml.Decode(name, data, &m)
	if err != nil {
		return Manifest{}, err
	}
	m.check(doc)
	return m, doc.Err()
}

func (m Manifest) check(doc *strictyaml.Document) {
	if !namePattern.MatchString(m.Name) {
		doc.At("name").Problemf("name %q: want lower-case letters and digits with inner '_' or '-'", m.Name)
	}
	if strings.ContainsRune(m.Executable, '/') && !filepath.IsAbs(m.Executable) {
		doc.At("executable").Problemf("executable %q: want a name, which is looked up on PATH, or an absolute path",
			m.Executable)
	}
	if m.Folder != "" && !filepath.IsAbs(m.Folder) {
		doc.At("folder").Problemf("folder %q: want an absolute path", m.Folder)
	}
	m.Version.check(doc)
	for i, field := range m.TiedTo {
		if _, ok := fields[field]; !ok {
			doc.At("tied_to", i).Problemf("unknown field %q%s: want some of %s", field,
				registry.Suggest(field, fieldNames()), strings.Join(fieldNames(), ", "))
		}
	}
	for field := range m.Values {
		if !slices.Contains(m.TiedTo, field) {
			doc.At("values", field).Problemf("%q is not in tied_to", field)
		}
	}
	m.checkArguments(doc)
	for i, pattern := range m.Inputs {
		checkInput(doc.At("inputs", i), pattern)
	}
	if m.Tuning != "" && (!fs.ValidPath(m.Tuning) || m.Tuning == ".") {
		doc.At("tuning").Problemf("tuning %q: want the name of a file", m.Tuning)
	}
	m.Engine.check(doc)
	if m.Run != nil {
		m.Run.check(doc)
	}
}

// check refuses a version that cannot be known.
func (v Version) check(doc *strictyaml.Document) {
	asked := v.Pattern != "" || len(v.Arguments) > 0
	switch pattern, err := regexp.Compile(v.Pattern); {
	case v.Stated != "" && asked, v.Stated == "" && len(v.Arguments) == 0:
		doc.At("version").Problemf("version: want arguments and pattern, or stated for a tool that prints none")
	case v.Stated == "" && (err != nil || pattern.NumSubexp() < 1):
		doc.At("version", "pattern").Problemf("pattern %q: want a regular expression with a group around the version", v.Pattern)
	}
}

// check refuses files that are not in the folder of the engine, and an entry that is not there.
func (e Engine) check(doc *strictyaml.Document) {
	for i, output := range e.Outputs {
		if !fs.ValidPath(output) || output == "." {
			doc.At("engine", "outputs", i).Problemf("output %q: want a relative path that stays in the engine's folder", output)
		}
	}
	for i, name := range e.Discards {
		if slices.Contains(e.Outputs, name) || !fs.ValidPath(name) || name == "." {
			doc.At("engine", "discards", i).Problemf("discards %q: want a relative path that stays in the engine's folder, and is not one of the outputs", name)
		}
	}
	if !slices.Contains(e.Outputs, e.Entry) {
		doc.At("engine", "entry").Problemf("entry %q is not one of the outputs", e.Entry)
	}
}

// checkInput refuses a pattern of files that the tool cannot see.
func checkInput(at *strictyaml.Node, pattern string) {
	_, err := filepath.Match(pattern, "")
	switch {
	case err != nil || pattern == "":
		at.Problemf("input %q: want a pattern of files, such as lib or share/*.json", pattern)
	case filepath.IsAbs(pattern) &&
		(!system(filepath.Clean(pattern)) || filepath.Clean(pattern) != strings.TrimSuffix(pattern, "/")):
		at.Problemf(
			"input %q: want a path relative to the folder of the executable, or one of system software, below %s; the tool cannot see others",
			pattern, strings.Join(sandbox.SystemFolders(), ", "))
	case !filepath.IsAbs(pattern) && !filepath.IsLocal(pattern):
		at.Problemf("input %q: want a pattern that stays in the folder of the executable", pattern)
	}
}

// checkArguments refuses an unknown placeholder.
func (m Manifest) checkArguments(doc *strictyaml.Document) {
	known := append([]string{"model", "out"}, m.TiedTo...)
	if m.Tuning != "" {
		known = append(known, "tuning")
	}
	for i, argument := range m.Compile.Arguments {
		for _, found := range placeholder.FindAllString(argument, -1) {
			if name := strings.Trim(found, "{}"); !slices.Contains(known, name) {
				doc.At("compile", "arguments", i).Problemf("unknown placeholder %s%s: want {%s}",
					found, registry.Suggest(name, known), strings.Join(known, "}, {"))
			}
		}
	}
}

// fields are the fields of a target that a manifest can name, as mismatches name them.
var fields = map[string]func(artifact.Target) string{
	"cpu.arch":            func(t artifact.Target) string { return t.CPU.Arch },
	"cpu.level":           func(t artifact.Target) string { return t.CPU.Level },
	"cpu.features":        func(t artifact.Target) string { return strings.Join(t.CPU.Features, ",") },
	"accelerator.vendor":  accelerator(func(a artifact.TargetAccelerator) string { return a.Vendor }),
	"accelerator.arch":    accelerator(func(a artifact.TargetAccelerator) string { return a.Arch }),
	"accelerator.product": accelerator(func(a artifact.TargetAccelerator) string { return a.Product }),
}

func accelerator(of func(artifact.TargetAccelerator) string) func(artifact.Target) string {
	return func(t artifact.Target) string {
		if t.Accelerator == nil {
			return ""
		}
		return of(*t.Accelerator)
	}
}

func fieldNames() []string {
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// system reports whether a path belongs to system software, which every driver can see.
func system(path string) bool {
	return slices.ContainsFunc(sandbox.SystemFolders(), func(folder string) bool {
		return path == folder || strings.HasPrefix(path, folder+"/")
	})
}
