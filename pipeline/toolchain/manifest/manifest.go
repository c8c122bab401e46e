package manifest

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// Manifest describes a compiler with a command line.
type Manifest struct {
	Name       string  `yaml:"name,required" doc:"Name of the toolchain, and of the runtime that a node must have"`
	Licence    string  `yaml:"licence,required" doc:"Under which the tool is used"`
	Executable string  `yaml:"executable,required" doc:"Program, by name or absolute path"`
	Version    Version `yaml:"version,required" doc:"How its version is found out"`
	Compile    Compile `yaml:"compile,required" doc:"How it compiles"`
	Engine     Engine  `yaml:"engine,required" doc:"What its engines are like"`
	Tuning     string  `yaml:"tuning" doc:"Name of the file in which the tool keeps what it learned for a target, such as timing.cache; {tuning} is its path"`
	// Inputs is nil for every file in the folder of the executable.
	Inputs []string `yaml:"inputs" doc:"Files that the tool is made of: patterns from the folder of the executable on, absolute ones for the system's software; a folder stands for all files in it. All files in the folder of the executable where nothing is said"`
	TiedTo []string `yaml:"tied_to" doc:"Fields that a target must say, since an engine works for nothing else"`

	text []byte // the file, for the driver's identity
}

// Version is how a tool says its version.
type Version struct {
	Arguments []string `yaml:"arguments,required" doc:"Of the program, so that it prints its version"`
	Pattern   string   `yaml:"pattern,required" doc:"Regular expression (RE2) whose first group is the version: numbers separated by dots"`
}

// Compile is how a tool is called. In arguments {model} stands for the ONNX file, {out}
// for the folder that takes the engine, and the names of TiedTo in braces for what the
// target says: {accelerator.arch}. {tuning} is the file of Tuning, which the tool reads if
// it is there and leaves for the next time.
type Compile struct {
	Arguments []string `yaml:"arguments,required" doc:"Of the program; {model}, {out} and fields of the target in braces"`
}

// Engine is what a tool makes.
type Engine struct {
	Format       string   `yaml:"format,required" doc:"Name of the format, such as tensorrt-plan"`
	Entry        string   `yaml:"entry,required" doc:"File that the runtime loads"`
	Outputs      []string `yaml:"outputs,required" doc:"Every file that an engine has, and no other"`
	NativeCode   bool     `yaml:"native_code" doc:"Engines hold machine code"`
	ExactRuntime bool     `yaml:"exact_runtime" doc:"Engines need the very version of the runtime"`
}

// namePattern is what a toolchain may be called: it names a runtime and a file.
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

// Parse reads the bytes of the manifest that messages call name. Errors: CodeInvalid.
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
	if pattern, err := regexp.Compile(m.Version.Pattern); err != nil || pattern.NumSubexp() < 1 {
		doc.At("version", "pattern").Problemf("pattern %q: want a regular expression with a group around the version",
			m.Version.Pattern)
	}
	for i, field := range m.TiedTo {
		if _, ok := fields[field]; !ok {
			doc.At("tied_to", i).Problemf("unknown field %q%s: want some of %s", field,
				registry.Suggest(field, fieldNames()), strings.Join(fieldNames(), ", "))
		}
	}
	m.checkArguments(doc)
	for i, output := range m.Engine.Outputs {
		if !fs.ValidPath(output) || output == "." {
			doc.At("engine", "outputs", i).Problemf("output %q: want a relative path that stays in the engine's folder", output)
		}
	}
	for i, pattern := range m.Inputs {
		m.checkInput(doc.At("inputs", i), pattern)
	}
	if m.Tuning != "" && (!fs.ValidPath(m.Tuning) || m.Tuning == ".") {
		doc.At("tuning").Problemf("tuning %q: want the name of a file", m.Tuning)
	}
	if !slices.Contains(m.Engine.Outputs, m.Engine.Entry) {
		doc.At("engine", "entry").Problemf("entry %q is not one of the outputs", m.Engine.Entry)
	}
}

// checkInput refuses a pattern of files that the tool cannot see.
func (m Manifest) checkInput(at *strictyaml.Node, pattern string) {
	_, err := filepath.Match(pattern, "")
	switch {
	case err != nil || pattern == "":
		at.Problemf("input %q: want a pattern of files, such as lib or share/*.json", pattern)
	case filepath.IsAbs(pattern) &&
		(!system(filepath.Clean(pattern)) || filepath.Clean(pattern) != strings.TrimSuffix(pattern, "/")):
		at.Problemf("input %q: want one from the folder of the executable on, or one of the system's software, below %s; the tool sees no others", pattern, strings.Join(sandbox.SystemFolders(), ", "))
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
				doc.At("compile", "arguments", i).Problemf("%s stands for nothing%s: want {%s}",
					found, registry.Suggest(name, known), strings.Join(known, "}, {"))
			}
		}
	}
}

// fields are what a target can be asked for, by the names that mismatches use.
var fields = map[string]func(registry.Target) string{
	"cpu.arch":            func(t registry.Target) string { return t.CPU.Arch },
	"cpu.level":           func(t registry.Target) string { return t.CPU.Level },
	"cpu.features":        func(t registry.Target) string { return strings.Join(t.CPU.Features, ",") },
	"accelerator.vendor":  accelerator(func(a registry.TargetAccelerator) string { return a.Vendor }),
	"accelerator.arch":    accelerator(func(a registry.TargetAccelerator) string { return a.Arch }),
	"accelerator.product": accelerator(func(a registry.TargetAccelerator) string { return a.Product }),
}

func accelerator(of func(registry.TargetAccelerator) string) func(registry.Target) string {
	return func(t registry.Target) string {
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
