package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
)

// half is the variant in half precision.
const half = "{name: fp16, quantize: {method: fp16}}"

// model is one of the zoo: its name in the table, how its folder is made, and what is asked of every toolchain.
type model struct {
	name     string
	place    func(p program, dir string) error // makes a folder with a spec
	variants []string                          // lines of the spec
	sizes    string                            // shapes for toolchains that know no open dimensions
	others   string                            // cases of other sizes than these, which such toolchains do not get
}

func zoo() []model {
	fixed, precisions := "shapes: {batch: 1}", []string{"fp32", half, "{name: int8, quantize: {method: static}}"}
	return []model{
		{"digits", shipped("digits"), precisions, fixed, ""},
		{"text", shipped("text"), []string{"fp32", half, "{name: int8d, quantize: {method: dynamic}}", "{name: int4, quantize: {method: weights}}"}, "shapes: {batch: 1, seq: 16}", "cases/cases-00001.safetensors"},
		{"vision transformer", drawn("vit", "--label", "label"), precisions, fixed, ""},
		{"OCR, detector", drawn("detector"), precisions, fixed, ""},
		{"OCR, recognizer", drawn("crnn"), precisions, fixed, ""},
		{"VAD", drawn("vad"), precisions, fixed, ""},
		{"boosted trees", shipped("tumors"), []string{"fp32"}, fixed, ""},
		{"random forest", shipped("wine"), []string{"fp32"}, fixed, ""},
		{"linear pipeline", linear, []string{"fp32"}, fixed, ""},
	}
}

// shipped is an example.
func shipped(name string) func(program, string) error {
	return func(_ program, dir string) error { return os.CopyFS(dir, os.DirFS(filepath.Join("examples", name))) }
}

// linear is examples/wine with another model: a scaler and a logistic regression in place of the forest.
func linear(p program, dir string) error {
	if err := shipped("wine")(p, dir); err != nil {
		return err
	}
	python, err := p.python("scikit-learn")
	if err != nil {
		return err
	}
	script, err := filepath.Abs("tools/toolchainstable/linear.py")
	if err != nil {
		return err
	}
	if out, err := execute(dir, nil, python, "-B", script, "wine.skops"); err != nil {
		return fmt.Errorf("linear.py: %w: %s", err, out)
	}
	spec := filepath.Join(dir, "mlpromote.yaml")
	text, err := os.ReadFile(spec)
	if err != nil {
		return err
	}
	// It has no tree, whose class needs trust.
	return os.WriteFile(spec, []byte(strings.Replace(string(text), ", trust: {types: [sklearn.tree._tree.Tree]}", "", 1)), 0o644)
}

// drawn is a model that a script draws from a seed, with cases and calibration data; init gets these arguments for it.
func drawn(shape string, arguments ...string) func(program, string) error {
	return func(p program, dir string) error {
		python, err := p.python("onnxruntime")
		if err != nil {
			return err
		}
		script, err := filepath.Abs("cmd/mlpromote/architectures/testdata/shapes.py")
		if err != nil {
			return err
		}
		if out, err := execute(dir, nil, python, "-B", script, shape, dir); err != nil {
			return fmt.Errorf("%s: %w: %s", shape, err, out)
		}
		if out, err := p.call(dir, append([]string{"init", "model.onnx", "--cases", "cases.npz"}, arguments...)...); err != nil {
			return fmt.Errorf("init: %w: %s", err, out)
		}
		if err := os.Mkdir(filepath.Join(dir, "calibration"), 0o755); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(dir, "calibration.npz"), filepath.Join(dir, "calibration", "calibration.npz")); err != nil {
			return err
		}
		f, err := os.OpenFile(filepath.Join(dir, "mlpromote.yaml"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString("\ncalibration: {path: calibration/}\n")
		return errors.Join(err, f.Close())
	}
}

const processor = "cpu: {arch: amd64, level: v3}"

// rowOf is the row of a toolchain; the zero Source for one of a manifest.
func rowOf(name string) drivers.Source {
	source, err := drivers.Find(name)
	if err != nil {
		return drivers.Source{}
	}
	return source
}

// compilesONNX reports whether a toolchain makes engines, of ONNX and not of sources.
func compilesONNX(name string) bool {
	profile := rowOf(name).Profile
	return profile.Name != "" && len(profile.Sources) == 0
}

// engines has a row for each model, toolchain and variant. Each is a release of its own, so that a model that one
// toolchain refuses is not kept from the others.
func (p program) engines() table {
	t := table{name: "engines", header: "| model | toolchain | variant | engine | parity | max. difference | SNR | accuracy | p50 | built twice |\n|---|---|---|--:|---|--:|--:|--:|--:|---|"}
	var asked [][2]string // toolchain and form
	for _, tool := range p.tools {
		if compilesONNX(tool.Name) {
			asked = append(asked, [2]string{tool.Name, ""})
		}
	}
	asked = append(asked, [2]string{"openvino", "blob"}, [2]string{"litert", "int8"})
	slices.SortFunc(asked, func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) })
	for _, m := range zoo() {
		for _, a := range asked {
			for _, variant := range m.variants {
				if a[1] == "int8" && !strings.Contains(variant, "method: static") {
					continue // which is all that such a form takes
				}
				name, shown := a[0], p.title(a[0])
				if a[1] != "" {
					name, shown = "{name: "+a[0]+", form: "+a[1]+"}", shown+", "+a[1]
				}
				t.rows = append(t.rows, row{
					tool:   a[0],
					title:  fmt.Sprintf("| %s | %s | %s |", m.name, shown, short(variant)),
					absent: !p.installed(a[0]),
					measure: func() (string, error) {
						return p.inFolder(func(dir string) (string, error) { return m.row(p, dir, a[0], name, variant) })
					},
				})
			}
		}
	}
	t.rows = append(t.rows, p.compiledSources()...)
	return t
}

// row builds and verifies an engine of the model by a toolchain, which the spec writes so, and returns its cells.
func (m model) row(p program, dir, toolchain, written, variant string) (string, error) {
	if err := m.place(p, dir); err != nil {
		return "", err
	}
	sizes := ""
	if m.wantsSizes(toolchain) {
		sizes = m.sizes
	}
	if sizes != "" && m.others != "" {
		if err := os.Remove(filepath.Join(dir, m.others)); err != nil {
			return "", err
		}
	}
	if err := edit(filepath.Join(dir, "mlpromote.yaml"), variant, target(toolchain), written, sizes); err != nil {
		return "", err
	}
	return p.release(dir)
}

// wantsSizes reports whether a toolchain takes the model with one size for each dimension alone.
func (m model) wantsSizes(toolchain string) bool {
	return toolchain == "coreml" || toolchain == "tvm" && m.others != ""
}

// target is what the spec says of the machine.
func target(toolchain string) string {
	row := rowOf(toolchain)
	switch keeps := row.Profile.KeepsFP32; {
	case row.Example.Accelerator != nil:
		return fmt.Sprintf("accelerator: {arch: %s}", row.Example.Accelerator.Arch)
	case row.Example.OS != "":
		return fmt.Sprintf("os: %s, cpu: {arch: %s}", row.Example.OS, row.Example.CPU.Arch)
	case keeps[0] != "": // by itself it computes in bf16 where a processor has that
		return fmt.Sprintf("%s, load: {options: {%s: %s}, required: true}", processor, keeps[0], keeps[1])
	}
	return processor
}

// short is the name of a variant.
func short(variant string) string {
	return strings.Trim(strings.Split(strings.TrimPrefix(variant, "{name: "), ",")[0], "}")
}

// inFolder calls do with an empty folder.
func (p program) inFolder(do func(dir string) (string, error)) (string, error) {
	dir, err := os.MkdirTemp("", "toolchainstable-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	return do(dir)
}

// edit makes the spec ask for one target and one variant, and gives dimensions these sizes unless they are empty.
func edit(path, variant, target, toolchain, sizes string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var kept []string
	skip := false
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, " ") && strings.TrimSpace(line) != "" {
			skip = strings.HasPrefix(line, "variants:") || strings.HasPrefix(line, "targets:") || strings.HasPrefix(line, "limits:") ||
				sizes != "" && strings.HasPrefix(line, "shapes:")
		}
		if !skip {
			kept = append(kept, line)
		}
	}
	spec := strings.Join(kept, "") + fmt.Sprintf("\n%s\nvariants: [%s]\ntargets: [{name: this, %s, toolchain: %s}]\n", sizes, variant, target, toolchain)
	return os.WriteFile(path, []byte(spec), 0o644)
}

// release builds what the spec in dir asks for, every step twice, verifies it, and returns the cells of its engine.
func (p program) release(dir string) (string, error) {
	built, ok, err := try(dir, nil, p.path, "build", "--data", "data", "--check-reproducible", "--output", "json")
	if err != nil {
		return "", err
	}
	if !ok {
		return fmt.Sprintf("- | %s | | | | | |", reason(built, dir)), nil
	}
	verified, err := p.call(dir, "verify", "--data", "data")
	var failed *exec.ExitError
	// A limit that was exceeded (3), and a machine that cannot run the engine (6), are results.
	if err != nil && (!errors.As(err, &failed) || failed.ExitCode() != 3 && failed.ExitCode() != 6) {
		return "", fmt.Errorf("verify: %w: %s", err, verified)
	}
	var build struct{ Reproducible map[string]string }
	if err := json.Unmarshal(built, &build); err != nil {
		return "", err
	}
	return p.inspect(dir, build.Reproducible)
}

// report is what inspect has of a release.
type report struct {
	Release struct {
		Engines []struct{ Bytes int64 }
	}
	Engines []struct {
		Label  string
		Parity struct {
			Verdict string
			Reasons []struct{ Message string }
			Outputs map[string]struct {
				MaxAbs float64
				SNRDb  any `json:"snrDb"`
			}
			Accuracy *struct{ Engine float64 }
		}
		Performance struct {
			Latency struct{ P50Ns int64 }
			P50Ns   int64
		}
	}
}

// verdict is the cell of a verdict, with the first reason where it is no pass.
func verdict(verdict string, reasons []struct{ Message string }) string {
	if verdict == "pass" || len(reasons) == 0 {
		return verdict
	}
	return verdict + ": " + cell(reasons[0].Message)
}

// inspect returns the cells of the one engine of the release in dir, from the size of the engine on.
func (p program) inspect(dir string, classes map[string]string) (string, error) {
	out, err := p.call(dir, "inspect", "--data", "data", "--output", "json")
	if err != nil {
		return "", fmt.Errorf("inspect: %w: %s", err, out)
	}
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		return "", err
	}
	if len(r.Engines) != 1 || len(r.Release.Engines) != 1 {
		return "", fmt.Errorf("inspect: %d engines, want one", len(r.Engines))
	}
	e, size := r.Engines[0], float64(r.Release.Engines[0].Bytes)/1024
	if e.Parity.Verdict == "" {
		return fmt.Sprintf("%.1f KiB | not run here | | | | | %s |", size, classes[e.Label]), nil
	}
	worst, snr := 0.0, "-"
	for _, o := range e.Parity.Outputs {
		if o.MaxAbs >= worst {
			worst = o.MaxAbs
			if db, ok := o.SNRDb.(float64); ok {
				snr = fmt.Sprintf("%.0f dB", db)
			}
		}
	}
	accuracy := "-"
	if a := e.Parity.Accuracy; a != nil {
		accuracy = fmt.Sprintf("%.2f %%", 100*a.Engine)
	}
	p50 := max(e.Performance.P50Ns, e.Performance.Latency.P50Ns)
	return fmt.Sprintf("%.1f KiB | %s | %.2g | %s | %s | %d µs | %s |", size, verdict(e.Parity.Verdict, e.Parity.Reasons), worst, snr, accuracy, p50/1000, classes[e.Label]), nil
}
