package spec_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
)

// pathKeys has, for every key of the schema that takes a path, a spec with PATH in its place.
func pathKeys() map[string]string {
	const rest = "model: vision/resnet50\nversion: 1.4.0\nvariants: [fp32]\n"
	const target = "targets: [linux/amd64/v3]\n"
	const cases = "cases: {generate: 4, seed: 1}\n"
	source := func(text string) string { return rest + target + cases + "source: " + text + "\n" }
	with := func(text string) string { return rest + "source: m.onnx\n" + text }
	toolchain := func(key string) string {
		return with(cases + "targets: [{name: t, cpu: {arch: amd64}, toolchain: {name: iree, " + key + ": PATH}}]\n")
	}
	return map[string]string{
		"source":                      source("PATH"),
		"source.path":                 source("{path: PATH}"),
		"source.path (a folder)":      source("{path: PATH, format: savedmodel}"),
		"source.operators[]":          source("{path: m.onnx, operators: [PATH]}"),
		"cases":                       with(target + "cases: PATH\n"),
		"cases.path":                  with(target + "cases: {path: PATH}\n"),
		"calibration":                 with(target + cases + "calibration: PATH\n"),
		"calibration.path":            with(target + cases + "calibration: {path: PATH}\n"),
		"assets[]":                    with(target + cases + "assets: [vocab.txt, PATH]\n"),
		"limits.accuracy.program":     with(target + "cases: {path: cases/, labels: l}\nlimits: {accuracy: {metric: program, program: PATH, min: 1}}\n"),
		"variants[].model":            "model: vision/resnet50\nversion: 1.4.0\nsource: m.onnx\n" + target + cases + "variants: [{name: student, model: PATH}]\n",
		"tune.variants[].model":       with(target + cases + "tune: {variants: [{name: student, model: PATH}]}\n"),
		"targets[].toolchain.tuning":  toolchain("tuning"),
		"targets[].toolchain.python*": toolchain("python"),
	}
}

// keysOf lists the keys of a schema whose values are paths, by their pattern.
func keysOf(schema map[string]any, at string) []string {
	var keys []string
	if pattern, _ := schema["pattern"].(string); pattern == `^[^/\\]` {
		keys = append(keys, at)
	}
	forms, _ := schema["anyOf"].([]any)
	for _, form := range forms {
		keys = append(keys, keysOf(form.(map[string]any), at)...)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		keys = append(keys, keysOf(items, at+"[]")...)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		keys = append(keys, keysOf(property.(map[string]any), strings.TrimPrefix(at+"."+name, "."))...)
	}
	return keys
}

// The tests below try every key that takes a path.
func TestEveryPathKeyIsTried(t *testing.T) {
	t.Parallel()
	data, err := spec.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	tried := make(map[string]bool)
	for key := range pathKeys() {
		key, _, _ = strings.Cut(key, " ")
		tried[strings.TrimSuffix(key, "*")] = true
	}
	found := keysOf(schema, "")
	for _, key := range found {
		if !tried[key] {
			t.Errorf("key %s takes a path: add it to pathKeys", key)
		}
	}
	if len(found) < 9 {
		t.Errorf("the schema has only the path keys %v", found)
	}
}

// hostile makes a folder for a spec with everything that its paths must not lead to.
func hostile(t *testing.T) (dir string, keys string) {
	t.Helper()
	dir = folder(t, "")
	outside := t.TempDir()
	keys = filepath.Join(dir, "signing")
	for _, folder := range []string{filepath.Join(outside, "deep"), filepath.Join(dir, ".mlpromote", "keys"), keys} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	secrets := []string{filepath.Join(outside, "secret"), filepath.Join(dir, ".mlpromote", "keys", "local.key"), filepath.Join(keys, "builder.key")}
	for _, file := range secrets {
		if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"to-file": filepath.Join(outside, "secret"), "to-folder": outside, "sub/to-folder": outside, "to-environ": "/proc/self/environ",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := filepath.Rel(dir, outside)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..", out), filepath.Join(dir, "sub", "relative")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if socket, err := net.Listen("unix", filepath.Join(dir, "socket")); err == nil {
		t.Cleanup(func() { socket.Close() })
	}
	return dir, keys
}

// Every path of a spec stays in its folder, after links, and outside of the data directory and
// the keys. It leads to a regular file or a folder.
func TestPathsStayInTheFolder(t *testing.T) {
	t.Parallel()
	dir, keys := hostile(t)
	refused := map[string]string{
		"/etc/passwd":               "an absolute path",
		"/etc":                      "an absolute path",
		"../secret":                 "leads out of the folder of the spec",
		"..":                        "leads out of the folder of the spec",
		"sub/../../secret":          "leads out of the folder of the spec",
		"to-file":                   "leads to an absolute path",
		"to-folder":                 "leads to an absolute path",
		"to-folder/secret":          "leads to an absolute path",
		"sub/to-folder/deep":        "leads to an absolute path",
		"sub/relative/secret":       "leads out of the folder of the spec",
		"./sub/relative/deep":       "leads out of the folder of the spec",
		"to-environ":                "leads to an absolute path",
		"./pipe":                    "found a named pipe",
		"./socket":                  "found a socket",
		".mlpromote/keys":           "holds keys",
		".mlpromote/keys/local.key": "holds keys",
		"signing/builder.key":       "holds keys",
		"./signing":                 "holds keys",
		"./nowhere":                 "no such file or folder",
	}
	for key, text := range pathKeys() {
		for path, want := range refused {
			t.Run(key+" "+path, func(t *testing.T) {
				t.Parallel()
				if strings.HasSuffix(key, "*") && !strings.Contains(path, "/") {
					t.Skip("a name without '/' is looked up on PATH")
				}
				file := filepath.Join(dir, strings.NewReplacer("/", "_", " ", "_", "[]", "", "*", "").Replace(key+path)+".yaml")
				written := strings.ReplaceAll(text, "PATH", path)
				if err := os.WriteFile(file, []byte(written), 0o600); err != nil {
					t.Fatal(err)
				}
				_, err := spec.Load(file, spec.Options{Private: []string{keys}})
				if err == nil || registry.ExitCode(err) != 2 {
					t.Fatalf("error %v, exit %d, want exit 2 for\n%s", err, registry.ExitCode(err), written)
				}
				if said := problems(t, err); !strings.Contains(said, path+": ") || !strings.Contains(said, want) {
					t.Errorf("got %q, want %q", said, want)
				}
				line := slices.IndexFunc(strings.Split(written, "\n"), func(l string) bool { return strings.Contains(l, path) }) + 1
				if said := problems(t, err); !strings.HasPrefix(said, strconv.Itoa(line)+":") {
					t.Errorf("got %q, want line %d", said, line)
				}
			})
		}
	}
}

// The folder of the spec may contain the data directory. Links that stay in the folder are
// allowed.
func TestPathsInTheFolder(t *testing.T) {
	t.Parallel()
	dir, keys := hostile(t)
	for link, target := range map[string]string{"model": "m.onnx", "sub/cases": "../cases", "words": "sub"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	edit := strings.NewReplacer("m.onnx", "model", "cases/", "sub/cases", "calibration: calibration", "calibration: calibration/")
	text := edit.Replace(small) +
		"assets: [words/vocab.txt]\n"
	file := filepath.Join(dir, spec.File)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := spec.Load(file, spec.Options{Private: []string{keys, filepath.Join(dir, "nowhere")}}); err != nil {
		t.Errorf("error %v for\n%s", err, text)
	}
	if _, err := spec.Load(file, spec.Options{Private: []string{dir}}); registry.ExitCode(err) != 2 {
		t.Errorf("a spec in the data directory: error %v, want exit 2", err)
	}
}
