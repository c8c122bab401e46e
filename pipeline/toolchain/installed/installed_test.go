package installed_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
)

// Of each runtime the newest version counts. An install without a record, without its library as it was, in a
// folder that has no key in its name, of a toolchain that runs nothing, or with a version that is no row of numbers,
// does not.
func TestRuntimes(t *testing.T) {
	t.Parallel()
	cache, key := t.TempDir(), strings.Repeat("0", installed.KeyLength-1)
	for folder, record := range map[string]string{
		"iree-" + key + "a":        `{"name": "iree", "version": "3.9.0", "library": "lib.so", "librarySize": 2}`,
		"iree-" + key + "b":        `{"name": "iree", "version": "3.10.0", "library": "lib.so", "librarySize": 2}`,
		"iree-old":                 `{"name": "iree", "version": "4.0.0", "library": "lib.so", "librarySize": 2}`,
		"litert-" + key + "a":      `{"name": "litert", "version": "1.0.0"}`,
		"iree-" + key + "c":        `{"name": "iree", "version": "5.0.0", "library": "lib.so", "librarySize": 3}`,
		"openvino-" + key + "a":    `{"name": "openvino", "version": "1.0.0", "library": "none.so"}`,
		"litert-" + key + "b":      `{"name": "litert", "version": "2.0rc1"}`,
		"nncf-" + key + "a":        `{"name": "nncf", "version": "3.0.0"}`,
		"onnxruntime-" + key + "a": "",
	} {
		dir := filepath.Join(installed.In(cache), folder)
		write(t, filepath.Join(dir, installed.VenvDir, "bin", "python"), "")
		write(t, filepath.Join(dir, "lib.so"), "so")
		if record != "" {
			write(t, filepath.Join(dir, installed.RecordFile), record)
		}
	}
	if got, want := installed.Runtimes(installed.In(cache)), map[string]string{"iree": "3.10.0", "litert": "1.0.0"}; !maps.Equal(got, want) {
		t.Errorf("the runtimes are %v, want %v", got, want)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
