//go:build cgo

package endtoend

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// interopPython is a Python with the packages of tools/interop/requirements.lock. It skips the test where there is none.
func interopPython(t *testing.T) string {
	t.Helper()
	path := os.Getenv("MLPROMOTE_INTEROP_PYTHON")
	if path == "" {
		t.Skip("MLPROMOTE_INTEROP_PYTHON names no Python; make interop makes one")
	}
	return path
}

// The reference implementation of OpenSSF Model Signing accepts the signature of a pulled folder, with its key and its
// files alone.
func testModelSigning(t *testing.T, p *plain) {
	python := interopPython(t)
	dir := t.TempDir()
	folder, signature, other := filepath.Join(dir, "digits"), filepath.Join(dir, "model.sig"), filepath.Join(dir, "other", "promoter.pub")
	p.must(t, "pull", programtest.Model, "--env", "prod", "-o", folder)
	p.must(t, "export", "model-signature", folder, "--env", "prod", "--model", programtest.Model, "-o", signature)
	p.must(t, "key", "generate", "--role", "promoter", "--keys", filepath.Dir(other))
	ours := filepath.Join(p.Dir, "keys", "local.pub")
	changed := func(name string, change func(dir string) error) string {
		copied := filepath.Join(dir, name)
		if err := errors.Join(programtest.CopyTree(folder, copied), change(copied)); err != nil {
			t.Fatal(err)
		}
		return copied
	}
	write := func(file string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, file), []byte("another model"), 0o600) }
	}
	for name, c := range map[string]struct{ folder, key, want string }{
		"as pulled":      {folder, ours, ""},
		"another key":    {folder, other, "Key mismatch"},
		"a changed file": {changed("changed", write("model.onnx")), ours, "Hash mismatch"},
		"another file":   {changed("more", write("second.onnx")), ours, "Extra files"},
		"a file less":    {changed("less", func(dir string) error { return os.Remove(filepath.Join(dir, "model.onnx")) }), ours, "Missing files"},
	} {
		out, err := exec.CommandContext(t.Context(), python, "-m", "model_signing", "verify", "key", "--signature", signature, "--public_key", c.key, c.folder).CombinedOutput()
		if (err == nil) != (c.want == "") || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, want %q\n%s", name, err, c.want, out)
		}
	}
}

// readBOM validates a document by the official schema and reads it, and prints what it has.
const readBOM = `
import json, sys
from cyclonedx.model.bom import Bom
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

text = open(sys.argv[1]).read()
wrong = JsonStrictValidator(SchemaVersion.V1_7).validate_str(text)
if wrong:
    sys.exit("not CycloneDX 1.7: %s" % wrong)
bom = Bom.from_json(json.loads(text))
bom.validate()
engines = [c for c in bom.components if c.bom_ref.value.startswith("engine:")]
print(bom.serial_number.urn, bom.metadata.component.name, len(engines), all(c.pedigree.ancestors for c in engines))
`

// CycloneDX's own library accepts a BOM by its schema, and reads it.
func testBOM(t *testing.T, p *plain) {
	python := interopPython(t)
	dir := t.TempDir()
	file, again, wrong := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json"), filepath.Join(dir, "wrong.json")
	p.must(t, "export", "bom", "prod/vision/digits:1.0.0", "-o", file)
	p.must(t, "export", "bom", "prod/vision/digits:1.0.0", "-o", again)
	first, err := os.ReadFile(file)
	second, err2 := os.ReadFile(again)
	if err := errors.Join(err, err2); err != nil || string(first) != string(second) {
		t.Fatalf("two exports of one release differ (error %v)", err)
	}
	out, err := exec.CommandContext(t.Context(), python, "-c", readBOM, file).CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), " vision/digits 4 True") || !strings.HasPrefix(string(out), "urn:uuid:") {
		t.Errorf("the library read %s (error %v), want the model with 4 engines that have ancestors", out, err)
	}
	if err := os.WriteFile(wrong, []byte(strings.Replace(string(first), `"lowerBound"`, `"lowestBound"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), python, "-c", readBOM, wrong).CombinedOutput(); err == nil || !strings.Contains(string(out), "not CycloneDX 1.7") {
		t.Errorf("a document with another field: error %v, want a refusal\n%s", err, out)
	}
}
