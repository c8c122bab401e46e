//go:build cgo && linux

package architectures

import (
	"fmt"
	"math"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// page is docs/validation-architectures.md. made says when and with what it was made.
func page(all []record, made string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Architectures by others

%s wrote this page %s.

Models of torchvision and transformers, and three written of torch's own modules, are drawn from a seed, trained for a minute on drawn data and exported by
torch 1.13 (opset 17, open batch). Each goes through init, build, verify, promote and pull, with default limits. Models, runtimes and precisions that have no row
below have not been run. A script without anything of mlpromote then loads the pulled folder with the runtime's own API, runs the 300 cases alone and
in stacks of four, and compares with what torch itself computed. Engines that fail their limits are not promoted, so that they
are not pulled. OpenVINO's engines have a load profile with fp32 as precision, since it computes in bf16 by itself on this machine.

| | engines |
|---|--:|
`, "`make architectures`", made)
	counts := []struct {
		what string
		is   func(record) bool
	}{
		{"tried", func(record) bool { return true }},
		{"built", record.built},
		{"verified: pass", record.verified},
		{"pulled from prod", record.pulled},
		{"loaded by the runtime's own API, gives at batch 1 and 4 what torch gives", func(r record) bool { return r.pulled() && r.agrees() }},
	}
	for _, c := range counts {
		n := 0
		for _, r := range all {
			if c.is(r) {
				n++
			}
		}
		fmt.Fprintf(&b, "| %s | %d |\n", c.what, n)
	}
	b.WriteString("\nFigures are of the worst output: SNR and the largest error relative to the spread, as `verify` has them against the reference, and the\nSNR of what the script loaded against torch.\n")
	last := ""
	for _, r := range all {
		if r.Architecture != last {
			last = r.Architecture
			fmt.Fprintf(&b,
				"\n## %s\n\n%s.\n\n| runtime | variant | built | verified | SNR | max. error | p50 | plain load | SNR to torch |\n|---|---|---|---|--:|--:|--:|---|--:|\n", last, described[last])
		}
		r.row(&b)
	}
	return b.String()
}

// described says what the architectures are.
var described = map[string]string{
	"lstm":         "Two LSTM layers, whose state is an input and an output",
	"crnn":         "Convolutions and two bidirectional GRU layers: scores of characters at each step",
	"vit":          "torchvision's VisionTransformer, 4 layers of width 64, images of 32x32",
	"encoder":      "transformers' BertForSequenceClassification, 3 layers of width 64, an open number of tokens",
	"unet":         "U-Net with two steps down, a class for each pixel of 32x32",
	"mobilenet":    "torchvision's mobilenet_v2, images of 64x64",
	"resnet":       "torchvision's resnet18, images of 64x64",
	"efficientnet": "torchvision's efficientnet_b0, images of 64x64",
}

func (r record) row(b *strings.Builder) {
	fmt.Fprintf(b, "| %s | %s | ", r.Runtime, r.Variant)
	if !r.built() {
		fmt.Fprintf(b, "%s | | | | | | |\n", cell(r.Error))
		return
	}
	snr, largest := r.worst()
	fmt.Fprintf(b, "yes | %s | %s | %.2g | %s | %s | %s |\n", cell(strings.TrimSuffix(string(r.Verdict)+": "+r.Reason, ": ")),
		decibels(snr), largest, time.Duration(r.P50Ns).Round(time.Microsecond), cell(r.loaded()), r.toTorch())
}

// loaded says in a cell what came of pull and the plain load.
func (r record) loaded() string {
	switch {
	case !r.verified():
		return ""
	case !r.pulled():
		return "not pulled: " + r.Pulled
	case r.agrees():
		return "ok"
	}
	var wrong []string
	for _, size := range batches {
		if r.Plain[size] != "" {
			wrong = append(wrong, fmt.Sprintf("batch %d: %s", size, r.Plain[size]))
		}
	}
	return strings.Join(wrong, "; ")
}

func (r record) toTorch() string {
	snr := math.Inf(1)
	for _, f := range r.Torch {
		snr = min(snr, f.SNRdB)
	}
	if len(r.Torch) == 0 {
		return ""
	}
	return decibels(snr)
}

// worst gives the figures of the output that is furthest off.
func (r record) worst() (snr, largest float64) {
	snr = math.Inf(1)
	for _, o := range r.Outputs {
		snr, largest = min(snr, float64(o.SpreadSNRdB)), max(largest, float64(o.MaxError))
	}
	return snr, largest
}

func decibels(snr float64) string {
	if snr > 900 {
		return "equal"
	}
	return fmt.Sprintf("%.0f dB", snr)
}

// cell writes text into a cell of a table.
func cell(text string) string {
	return registry.PlainText(strings.NewReplacer("|", "\\|", "<", "&lt;", "_", "\\_", "*", "\\*").Replace(text))
}
