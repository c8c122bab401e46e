// Command toolchainstable builds the examples with every toolchain that is installed,
// every step twice, verifies them, and writes what the reports say as a table between two marks of a
// document; without a document it prints the table.
//
//	toolchainstable -mlpromote bin/mlpromote [docs/toolchains.md]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	begin = "<!-- table: make toolchains-table -->\n"
	end   = "<!-- end of table -->\n"
)

// example is a spec that ships, and what is asked of every toolchain beside fp32.
type example struct {
	folder   string
	variants []string // lines of the spec
}

func examples() []example {
	return []example{
		{"examples/digits", []string{"fp32", "{name: int8, quantize: {method: static}}"}},
		{"examples/text", []string{"fp32", "{name: int8d, quantize: {method: dynamic}}", "{name: int4, quantize: {method: weights}}"}},
	}
}

func main() {
	program := flag.String("mlpromote", "bin/mlpromote", "the program")
	flag.Parse()
	if err := run(*program, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "toolchainstable:", err)
		os.Exit(1)
	}
}

func run(program, document string) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	if document == "" {
		table, err := table(program)
		_, written := os.Stdout.WriteString(table)
		return errors.Join(err, written)
	}
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s: no lines %q and %q", document, begin, end)
	}
	table, err := table(program)
	if err != nil {
		return err
	}
	return os.WriteFile(document, []byte(before+begin+table+"\n"+end+after), 0o644)
}

// table has a row for each example, toolchain and variant.
func table(program string) (string, error) {
	var table strings.Builder
	table.WriteString("\n| model | toolchain | variant | engine | parity | max. difference | SNR | accuracy | p50 | built twice |\n|---|---|---|--:|---|--:|--:|--:|--:|---|\n")
	for _, e := range examples() {
		if err := e.rows(program, &table); err != nil {
			return table.String(), fmt.Errorf("%s: %w", e.folder, err)
		}
	}
	return table.String(), nil
}

// rows builds and verifies the example with every toolchain, one release for each, so
// that one that refuses a model does not keep the others from it.
func (e example) rows(program string, table *strings.Builder) error {
	names, err := installed(program)
	if err != nil {
		return err
	}
	if slices.Contains(names, "openvino") {
		names = append(names, "{name: openvino, form: blob}")
	}
	for _, name := range names {
		for _, variant := range e.variants {
			if err := e.row(program, name, variant, table); err != nil {
				return fmt.Errorf("%s, %s: %w", name, variant, err)
			}
		}
	}
	return nil
}

func (e example) row(program, name, variant string, table *strings.Builder) error {
	dir, err := os.MkdirTemp("", "toolchainstable-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, os.DirFS(e.folder)); err != nil {
		return err
	}
	if err := e.edit(filepath.Join(dir, "mlpromote.yaml"), name, variant); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s, %s, %s\n", e.folder, name, variant)
	title := filepath.Base(e.folder) + " | " + strings.NewReplacer("{name: ", "", "form: ", "", "}", "").Replace(name) +
		" | " + strings.Trim(strings.Split(strings.TrimPrefix(variant, "{name: "), ",")[0], "}")
	built, err := call(dir, program, "build", "--data", "data", "--check-reproducible", "--output", "json")
	if err != nil {
		fmt.Fprintf(table, "| %s | - | %s | | | | | |\n", title, reason(built))
		return nil
	}
	verified, err := call(dir, program, "verify", "--data", "data")
	var failed *exec.ExitError
	if err != nil && (!errors.As(err, &failed) || failed.ExitCode() != 3) { // 3: a limit was exceeded, which is a result
		return fmt.Errorf("verify: %w: %s", err, verified)
	}
	var build struct{ Reproducible map[string]string }
	if err := json.Unmarshal(built, &build); err != nil {
		return err
	}
	return inspect(dir, program, title, build.Reproducible, table)
}

// edit makes the spec ask for one target and one variant.
func (e example) edit(path, name, variant string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var kept []string
	skip := false
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, " ") && strings.TrimSpace(line) != "" {
			skip = strings.HasPrefix(line, "variants:") || strings.HasPrefix(line, "targets:") || strings.HasPrefix(line, "limits:")
		}
		if !skip {
			kept = append(kept, line)
		}
	}
	spec := strings.Join(kept, "") +
		fmt.Sprintf("\nvariants: [%s]\ntargets: [{name: this, os: linux, cpu: {arch: amd64, level: v3}, toolchain: %s}]\n", variant, name)
	return os.WriteFile(path, []byte(spec), 0o644)
}

// makesNone reports whether a toolchain makes no engines: it imports, or quantizes.
func makesNone(name string) bool {
	return slices.Contains([]string{"scikit-learn", "safetensors", "tensorflow", "torch", "xgboost", "lightgbm", "pmml", "nncf"}, name)
}

func installed(program string) ([]string, error) {
	out, err := call(".", program, "toolchain", "list", "--output", "json")
	if err != nil {
		return nil, fmt.Errorf("list: %w: %s", err, out)
	}
	var all []struct{ Name, State string }
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, err
	}
	var names []string
	for _, t := range all {
		if t.State == "installed" && !makesNone(t.Name) && !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// call gives what a program prints: its result, or all that it says where it fails.
func call(dir, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(context.Background(), program, args...) // it ends with this program
	var out, all bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &all
	cmd.Env = append(os.Environ(), "COSIGN_PASSWORD=")
	if err := cmd.Run(); err != nil {
		return all.Bytes(), err
	}
	return out.Bytes(), nil
}

// reason is the one sentence of an error, for a cell.
func reason(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if _, message, ok := strings.Cut(line, "mlpromote: error: "); ok {
			return strings.ReplaceAll(strings.TrimSpace(message), "|", "/")
		}
	}
	return "no build"
}

type report struct {
	Release struct {
		Engines []struct {
			Bytes     int64
			Toolchain struct{ Name, Version string }
		}
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

func inspect(dir, program, title string, classes map[string]string, table *strings.Builder) error {
	out, err := call(dir, program, "inspect", "--data", "data", "--output", "json")
	if err != nil {
		return fmt.Errorf("inspect: %w: %s", err, out)
	}
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		return err
	}
	for i, e := range r.Engines {
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
		fmt.Fprintf(table, "| %s | %.1f KiB | %s | %.2g | %s | %s | %d µs | %s |\n",
			strings.Replace(title, r.Release.Engines[i].Toolchain.Name, r.Release.Engines[i].Toolchain.Name+" "+r.Release.Engines[i].Toolchain.Version, 1),
			float64(r.Release.Engines[i].Bytes)/1024, e.Parity.Verdict, worst, snr, accuracy, p50/1000, classes[e.Label])
	}
	return nil
}
