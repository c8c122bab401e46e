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
)

// example is a spec that ships, and what is asked of every toolchain beside fp32.
type example struct {
	folder   string
	variants []string // lines of the spec
	sizes    string   // shapes for toolchains that know no open dimensions
}

func examples() []example {
	return []example{
		{"examples/digits", []string{"fp32", "{name: int8, quantize: {method: static}}"}, "shapes: {batch: 1}"},
		{"examples/text", []string{"fp32", "{name: int8d, quantize: {method: dynamic}}", "{name: int4, quantize: {method: weights}}"}, "shapes: {batch: 1, seq: 16}"},
	}
}

// devices are the targets of toolchains that compile for other machines than this.
var devices = map[string]string{
	"tensorrt-rtx": "accelerator: {arch: sm_86}",
	"coreml":       "os: darwin, cpu: {arch: arm64}",
}

// makesNone reports whether a toolchain makes no engines: it imports, or quantizes.
func makesNone(name string) bool {
	return slices.Contains([]string{"scikit-learn", "safetensors", "tensorflow", "torch", "xgboost", "lightgbm", "pmml", "nncf"}, name)
}

// engines has a row for each example, toolchain and variant. Each is a release of its own, so that a model that one
// toolchain refuses is not kept from the others.
func (p program) engines() table {
	t := table{name: "engines", header: "| model | toolchain | variant | engine | parity | max. difference | SNR | accuracy | p50 | built twice |\n|---|---|---|--:|---|--:|--:|--:|--:|---|"}
	var asked [][2]string // toolchain and form
	for _, tool := range p.tools {
		if p.installed(tool.Name) && !makesNone(tool.Name) {
			asked = append(asked, [2]string{tool.Name, ""})
		}
	}
	for _, form := range [][2]string{{"openvino", "blob"}, {"litert", "int8"}} {
		if p.installed(form[0]) {
			asked = append(asked, form)
		}
	}
	slices.SortFunc(asked, func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) })
	for _, e := range examples() {
		for _, a := range asked {
			for _, variant := range e.variants {
				if a[1] == "int8" && !strings.Contains(variant, "method: static") {
					continue // which is all that such a form takes
				}
				target, sizes := "cpu: {arch: amd64, level: v3}", ""
				if a[0] == "coreml" {
					sizes = e.sizes
				}
				if device, ok := devices[a[0]]; ok {
					target = device
				}
				name, shown := a[0], p.title(a[0])
				if a[1] != "" {
					name, shown = "{name: "+a[0]+", form: "+a[1]+"}", shown+", "+a[1]
				}
				short := strings.Trim(strings.Split(strings.TrimPrefix(variant, "{name: "), ",")[0], "}")
				t.rows = append(t.rows, row{
					title: fmt.Sprintf("| %s | %s | %s |", filepath.Base(e.folder), shown, short),
					measure: func() (string, error) {
						return p.inFolder(func(dir string) (string, error) {
							if err := os.CopyFS(dir, os.DirFS(e.folder)); err != nil {
								return "", err
							}
							if err := edit(filepath.Join(dir, "mlpromote.yaml"), variant, target, name, sizes); err != nil {
								return "", err
							}
							return p.release(dir)
						})
					},
				})
			}
		}
	}
	return t
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
	return fmt.Sprintf("%.1f KiB | %s | %.2g | %s | %s | %d µs | %s |", size, e.Parity.Verdict, worst, snr, accuracy, p50/1000, classes[e.Label]), nil
}
