package manifest_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/manifest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// script is a compiler: it prints its version, or copies the file TABLE beside it.
const script = `#!/bin/sh
[ "$1" = --version ] && { echo "acc 2.1"; exit; }
cat "$(dirname "$0")/table" > "$3"
`

// tool writes files into a folder, including the compiler acc, and returns the folder.
func tool(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), toolchaintest.WriteProgram(path, text)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// describe is the manifest of the compiler in a folder, with more lines.
func describe(t *testing.T, dir, more string) manifest.Manifest {
	t.Helper()
	text := fmt.Sprintf(`name: acc
licence: none, it is a test
executable: %s/acc
version: {arguments: [--version], pattern: 'acc ([0-9.]+)'}
compile: {arguments: ["{model}", -o, "{out}/engine.bin"]}
engine: {format: acc, entry: engine.bin, outputs: [engine.bin]}
%s`, dir, more)
	m, err := manifest.Parse("acc.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return m
}

func open(t *testing.T, m manifest.Manifest) (toolchain.Driver, toolchain.Identity) {
	t.Helper()
	d, err := manifest.New(t.Context(), m, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	identity, err := d.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d, identity
}

// job compiles a model.
func job(t *testing.T, m manifest.Manifest) toolchain.Job {
	t.Helper()
	options, err := m.Profile().CompileOptions(artifact.Target{Name: "t"}, "fp32")
	if err != nil {
		t.Fatal(err)
	}
	return toolchain.Job{Verb: toolchain.VerbCompile, Options: options, Inputs: onnx(t)}
}

// onnx is a file that stands for a model.
func onnx(t *testing.T) []toolchain.Input {
	t.Helper()
	model := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(model, []byte("model"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []toolchain.Input{toolchaintest.Input(t, toolchain.RoleModel, "model.onnx", model)}
}

// A compiler that runs for its version sees neither our environment nor our files, and cannot
// write.
func TestVersionInTheSandbox(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := tool(t, map[string]string{"acc": `#!/bin/sh
if [ "$1" != --version ]; then exec env > "$3"; fi
names=$(env | grep -c -e COSIGN -e MLPROMOTE -e AWS)
files=$(cat ` + secret + ` 2>/dev/null | wc -l)
(echo spoilt > "$(dirname "$0")/left") 2>/dev/null
root=0; [ "$(id -u)" = 0 ] && root=1
echo "acc 1.$names.$root"
`})
	m := describe(t, dir, "")
	d, identity := open(t, m)
	if identity.Version != "1.0.0" {
		t.Errorf("version %s, want 1.0.0: the second number counts names of our environment, the third is 1 for root", identity.Version)
	}
	if _, err := os.Stat(filepath.Join(dir, "left")); err == nil {
		t.Error("the compiler wrote to its folder")
	}
	outcome, err := d.Do(t.Context(), job(t, m), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(outcome.Files[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range secrets {
		if strings.Contains(string(text), name) || strings.Contains(string(text), value) {
			t.Errorf("a job sees %s", name)
		}
	}
}

// Every file that can change a compiler's result is part of its identity, even if its version
// stays the same.
func TestIdentityKnowsTheFiles(t *testing.T) {
	t.Parallel()
	files := map[string]string{"acc": script, "table": "one", "lib/kernels.bin": "k", "notes.txt": "n"}
	for name, c := range map[string]struct {
		inputs string
		change func(dir string) error
		same   bool
	}{
		"nothing":                {change: func(string) error { return nil }, same: true},
		"executable":             {change: write("acc", script+"# another\n")},
		"neighbour":              {change: write("table", "two")},
		"below a neighbour":      {change: write("lib/kernels.bin", "l")},
		"new neighbour":          {change: write("extra", "")},
		"link":                   {change: func(dir string) error { return os.Symlink("table", filepath.Join(dir, "other")) }},
		"an input":               {inputs: "inputs: [table, lib]", change: write("lib/kernels.bin", "l")},
		"no input":               {inputs: "inputs: [table, lib]", change: write("notes.txt", "m"), same: true},
		"new file of a pattern":  {inputs: "inputs: ['lib/*.bin']", change: write("lib/more.bin", "l")},
		"file of no pattern":     {inputs: "inputs: ['lib/*.bin']", change: write("lib/more.txt", "l"), same: true},
		"executable alone":       {inputs: "inputs: []", change: write("table", "two"), same: true},
		"executable is always":   {inputs: "inputs: []", change: write("acc", script+"# another\n")},
		"moved to another place": {change: func(string) error { return nil }, same: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tool(t, files)
			_, before := open(t, describe(t, dir, c.inputs))
			if err := c.change(dir); err != nil {
				t.Fatal(err)
			}
			_, after := open(t, describe(t, dir, c.inputs))
			if same := before.Lock == after.Lock; same != c.same || before.Lock == "" {
				t.Errorf("lock %s, then %s: same %t, want %t", before.Lock, after.Lock, same, c.same)
			}
		})
	}
}

func write(name, text string) func(dir string) error {
	return func(dir string) error { return toolchaintest.WriteProgram(filepath.Join(dir, name), text) }
}

// The system software that a compiler loads is part of its identity: the interpreter of a
// script, and the libraries of a program and of the files beside it.
func TestSystemSoftwareCounts(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Skipf("the test needs a program to copy: %v", err)
	}
	scripted, err := manifest.MadeOf(filepath.Join(tool(t, map[string]string{"acc": script}), "acc"), []string{})
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := manifest.MadeOf(filepath.Join(tool(t, map[string]string{"acc": "", "plugin": string(program)}), "acc"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"acc", "loads /bin/sh 0", "loads libc.so.6 0"} {
		if !slices.Contains(scripted, want) {
			t.Errorf("a shell script is made of %v, want %s", scripted, want)
		}
	}
	if !slices.Contains(compiled, "loads libc.so.6 0") {
		t.Errorf("a program is made of %v, want libc.so.6", compiled)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	many := make(map[string]string)
	for i := range 10_001 {
		many[fmt.Sprintf("table-%d", i)] = ""
	}
	many["acc"] = script
	for name, c := range map[string]struct {
		files   map[string]string
		inputs  string
		private string
		code    registry.Code
		want    string
	}{
		"too many files": {files: many, code: registry.CodeInvalid, want: "has more than 10000 files and folders"},
		"no match":       {files: map[string]string{"acc": script}, inputs: "inputs: [share/*.json]", code: registry.CodeInvalid, want: "inputs: share/*.json matches no file"},
		"keys beside it": {files: map[string]string{"acc": script, "signing/builder.key": "k"}, private: "signing", code: registry.CodeInvalid, want: "has signing in it, which holds keys"},
		"data beside it": {files: map[string]string{"acc": script, "sub/.mlpromote/x": "k"},
			inputs: "inputs: []", code: registry.CodeInvalid, want: "has sub/.mlpromote in it, which holds keys"},
		"among keys":      {files: map[string]string{"acc": script}, private: ".", code: registry.CodeInvalid, want: "which holds keys"},
		"no version":      {files: map[string]string{"acc": "#!/bin/sh\necho hello\n"}, code: registry.CodeUnavailable, want: "printed no version that matches"},
		"none":            {files: map[string]string{}, code: registry.CodeUnavailable, want: "no such file"},
		"folder of pipes": {files: map[string]string{"acc": script, "pipe": ""}, inputs: "inputs: [pipe/x]", code: registry.CodeInvalid, want: "matches no file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tool(t, c.files)
			_, err := manifest.New(t.Context(), describe(t, dir, c.inputs), manifest.Options{Private: []string{filepath.Join(dir, orNowhere(c.private))}})
			if !registry.HasCode(err, c.code) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v (%s), want %s and %q", err, registry.CodeOf(err), c.code, c.want)
			}
			if c.want == "has more than 10000 files and folders" && !strings.Contains(strings.Join(registry.Hints(err), ""), "inputs:") {
				t.Errorf("hints %v, want one that names inputs:", registry.Hints(err))
			}
		})
	}
}

// orNowhere is a name that is there nowhere for none.
func orNowhere(name string) string {
	if name == "" {
		return "nowhere"
	}
	return name
}

// The result of a compiler whose files change while it runs is refused.
func TestChangedAtWork(t *testing.T) {
	t.Parallel()
	dir := tool(t, map[string]string{"acc": script, "table": "one"})
	m := describe(t, dir, "")
	d, _ := open(t, m)
	if _, err := d.Do(t.Context(), job(t, m), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if err := write("table", "three")(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Do(t.Context(), job(t, m), t.TempDir()); !registry.HasCode(err, registry.CodeUnavailable) ||
		!strings.Contains(err.Error(), "table changed while the tool ran") {
		t.Errorf("error %v, want that table changed", err)
	}
}

// So is the result of one that got another file meanwhile, if all files in its folder count.
func TestAddedAtWork(t *testing.T) {
	t.Parallel()
	for inputs, refused := range map[string]bool{"": true, "inputs: [table]": false} {
		dir := tool(t, map[string]string{"acc": script, "table": "one"})
		m := describe(t, dir, inputs)
		d, _ := open(t, m)
		if err := write("plugin", "two")(dir); err != nil {
			t.Fatal(err)
		}
		_, err := d.Do(t.Context(), job(t, m), t.TempDir())
		if refused != (err != nil && strings.Contains(err.Error(), "plugin changed while the tool ran")) {
			t.Errorf("%q: error %v, want that plugin changed: %v", inputs, err, refused)
		}
	}
}

// So is the result of one that is started by a link, if that leads to another program now.
func TestLinkChangedAtWork(t *testing.T) {
	t.Parallel()
	dir := tool(t, map[string]string{"one/acc": script, "two/acc": strings.ReplaceAll(script, "2.1", "2.2"), "table": "t"})
	lead := func(to string) {
		t.Helper()
		_ = os.Remove(filepath.Join(dir, "acc"))
		if err := os.Symlink(to, filepath.Join(dir, "acc")); err != nil {
			t.Fatal(err)
		}
	}
	lead("one/acc")
	m := describe(t, dir, "folder: "+dir)
	d, _ := open(t, m)
	if _, err := d.Do(t.Context(), job(t, m), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	lead("two/acc")
	if _, err := d.Do(t.Context(), job(t, m), t.TempDir()); !registry.HasCode(err, registry.CodeUnavailable) || !strings.Contains(err.Error(), "acc changed while the tool ran") {
		t.Errorf("error %v, want that acc changed", err)
	}
}

func TestInputsAreChecked(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		"''": "want a pattern", "'['": "want a pattern", "../x": "stays in the folder", "/root/x": "system software", "/usr/../root/x": "system software",
	} {
		_, err := manifest.Parse("acc.yaml",
			[]byte("name: acc\nlicence: x\nexecutable: acc\nversion: {arguments: [v], pattern: '(1)'}\ncompile: {arguments: ['{model}']}\nengine: {format: a, entry: e, outputs: [e]}\ninputs: ["+input+"]\n"))
		if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "acc.yaml:7:") || !strings.Contains(err.Error(), want) {
			t.Errorf("input %s: error %v, want line 7 and %q", input, err, want)
		}
	}
}

func TestManifestsAreChecked(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"folder: opt/acc":                                                 "want an absolute path",
		"values: {cpu.arch: {amd64: x86_64}}":                             "\"cpu.arch\" is not in tied_to",
		"version: {stated: '1.0', pattern: '([0-9.]+)'}":                  "want arguments and pattern, or stated",
		"version: {pattern: '([0-9.]+)'}":                                 "want arguments and pattern, or stated",
		"version: {arguments: [-v], pattern: 'acc [0-9]'}":                "want a regular expression with a group",
		"engine: {format: acc, entry: e, outputs: [e], discards: [e]}":    "is not one of the outputs",
		"engine: {format: acc, entry: e, outputs: [e], discards: [../e]}": "stays in the engine's folder",
		"compile: {from: {form: hlo}, arguments: ['{model}']}":            "toolchain",
	} {
		text := []string{"name: acc", "licence: x", "executable: acc", "tied_to: []"}
		key, _, _ := strings.Cut(line, ":")
		for _, other := range []string{"version: {stated: '1.0'}", "compile: {arguments: ['{model}']}", "engine: {format: a, entry: e, outputs: [e]}"} {
			if !strings.HasPrefix(other, key+":") {
				text = append(text, other)
			}
		}
		_, err := manifest.Parse("acc.yaml", []byte(strings.Join(append(text, line), "\n")+"\n"))
		if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "acc.yaml:") {
			t.Errorf("%s: error %v, want %q and its line", line, err, want)
		}
	}
}

// With a folder, a tool sees more than where its program lies, and is made of it; the program has to be there.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir := tool(t, map[string]string{"bin/acc": "#!/bin/sh\necho acc \"$(cat \"$(dirname \"$0\")/../lib/version\")\"\n", "lib/version": "3.1"})
	m := describe(t, filepath.Join(dir, "bin"), "folder: "+dir)
	_, before := open(t, m)
	if before.Version != "3.1" {
		t.Errorf("version %s, want that of the file in lib", before.Version)
	}
	if err := write("lib/kernels", "k")(dir); err != nil {
		t.Fatal(err)
	}
	if _, after := open(t, m); after.Lock == before.Lock {
		t.Error("a new file in lib does not change the lock")
	}
	m.Folder = filepath.Join(dir, "lib")
	if _, err := manifest.New(t.Context(), m, manifest.Options{}); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "is not below") {
		t.Errorf("error %v, want that the program is not below the folder", err)
	}
}
