package script_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
)

// BenchmarkHarness times what a driver in Python does for each case beside calling its runtime: see
// testdata/harness.py.
func BenchmarkHarness(b *testing.B) {
	onnx, err := toolchaintest.Installer(b, "onnxruntime").Find("onnxruntime")
	if err != nil {
		b.Fatal(err)
	}
	made := b.TempDir()
	if out, err := exec.Command(interpreter(onnx.Dir), "../ort/testdata/harness.py", made).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	record, err := toolchaintest.Installed(b, "openvino").Find("openvino")
	if err != nil {
		b.Fatal(err)
	}
	for name, c := range map[string]struct{ model, cases, times string }{
		"digits":       {digits + "digits.onnx", digits + "cases/cases-00000.safetensors", "10"},
		"convolutions": {filepath.Join(made, "convolutions.onnx"), filepath.Join(made, "cases.safetensors"), "5"},
	} {
		b.Run("openvino/"+name, func(b *testing.B) {
			var over struct {
				Bare      float64 `json:"bare_ms"`
				Time      float64 `json:"time"`
				Processor float64 `json:"processor"`
			}
			for b.Loop() {
				cmd := exec.Command(interpreter(record.Dir), "testdata/harness.py", "../drivers", "openvino", c.model, c.cases, c.times, "10")
				out, err := cmd.Output()
				if err == nil {
					err = json.Unmarshal(out, &over)
				}
				if err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
			}
			b.ReportMetric(over.Bare, "bare-ms")
			b.ReportMetric(over.Time, "%-time-over-bare")
			b.ReportMetric(over.Processor, "%-processor-over-bare")
		})
	}
}

func interpreter(install string) string { return filepath.Join(install, "venv", "bin", "python3") }
