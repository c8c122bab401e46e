package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// byExpected names, in a cross-check, outputs that the user's own framework computed.
const byExpected = "expected outputs of the cases"

// checkExpected judges golden outputs beside the arrays expected:NAME of the cases, which the model computed before its export, by the limits
// of an engine in the model's own numbers, and notes the result as a cross-check of all cases. whole reports whether all outputs have such arrays.
// Errors: CodeLimit for outputs beyond the limits, CodeInvalid for arrays that fit no output.
func checkExpected(ctx context.Context, m Maker, golden *goldenset.Set) (whole bool, err error) {
	outputs, err := expectedOutputs(m)
	if err != nil || len(outputs) == 0 {
		return false, err
	}
	precision := exportedPrecision(m)
	limits := validators.Limits{V: m.Plan.Limits.V, Confidence: m.Plan.Limits.Confidence,
		Precisions: map[string]validators.PrecisionLimits{precision: {Outputs: make(map[string]validators.OutputLimits)}}}
	set := m.Inputs.Cases
	run := parity.Run{Engine: filepath.Dir(golden.Files[0].Path), Shards: golden.Set.Shards, Outputs: make(map[string]tensor.Options),
		Masks: parity.Masks{Dir: filepath.Dir(set.Files[0].Path), Shards: set.Record.Shards, Inputs: make(map[string]string)}}
	for _, name := range outputs {
		output, _ := m.Inputs.Interface.Output(name)
		limited, err := expectedLimits(m, precision, output)
		if err != nil {
			return true, err
		}
		if limited.Where != "" {
			run.Masks.Inputs[name] = limited.Where
		}
		limits.Precisions[precision].Outputs[name], run.Outputs[name] = limited, limited.Comparison(output)
	}
	if detected, _, err := m.Inputs.Interface.Detections(); err == nil && !slices.ContainsFunc(detected.Names(), func(name string) bool { return !slices.Contains(outputs, name) }) {
		run.Detections = detected
	}
	if run.Golden, err = writeExpected(m, golden, outputs); err != nil {
		return true, err
	}
	compared, err := parity.Compare(ctx, run)
	if err != nil {
		return true, cases.TensorError(err)
	}
	judged := limits.Judge(precision, validators.Measured{Outputs: compared.Outputs, Cases: compared.Cases, Attempts: 1,
		Sides: validators.Sides{Reference: "the original", Engine: exportOf(m)}})
	c := evidence.CrossCheck{By: byExpected, Cases: compared.Cases, Of: golden.Set.Count, Checks: judged.Checks, Precision: precision}
	if rest := len(m.Inputs.Interface.Outputs) - len(outputs); rest > 0 {
		c.Reason = fmt.Sprintf("of %s; %s", strings.Join(outputs, ", "), registry.Count(rest, "more output has none", "more outputs have none"))
	}
	defer func() { golden.CrossCheck = c }()
	whole = len(outputs) == len(m.Inputs.Interface.Outputs)
	for _, f := range judged.Found.OnePerLine() {
		c.Reason = f.Reason.Message
		if f.Verdict == evidence.VerdictFail {
			return whole, registry.WithHint(registry.Errorf(registry.CodeLimit, "%s does not compute the expected outputs of the cases, which are those of the original: %s",
				exportOf(m), f.Reason.Message),
				`look at the export (was the model in evaluation mode, are the cases preprocessed as they were there)%s%s, or accept the difference: reference: {accept: "your reason"}`,
				worstExpected(judged.Checks, f.Reason.Output), paddingOf(m.Inputs.Interface, f.Reason.Output, run.Masks))
		}
	}
	return whole, nil
}

// exportOf is what a message calls the file that is compared with the original model.
func exportOf(m Maker) string {
	if m.Plan.Import == nil {
		return "the ONNX file"
	}
	return "the exported file"
}

// paddingOf proposes to leave padding out of the comparison of an output if an input looks like its mask.
func paddingOf(iface validators.Interface, output string, masks parity.Masks) string {
	of, ok := iface.Output(output)
	if !ok || masks.Inputs[output] != "" {
		return ""
	}
	at := slices.IndexFunc(iface.Inputs, func(input validators.TensorInfo) bool {
		return strings.Contains(strings.ToLower(input.Name), "mask") && len(input.Shape) > 1 && beginsWith(of.Shape, input.Shape)
	})
	if at < 0 {
		return ""
	}
	return fmt.Sprintf("; if values at padding do not count, add compare: {%s: {where: %s}} to cases", spec.Quoted(output), spec.Quoted(iface.Inputs[at].Name))
}

// beginsWith reports whether the dimensions of a mask can be the first ones of an output: open ones may have other names there.
func beginsWith(output, mask []validators.Dim) bool {
	return len(mask) <= len(output) && slices.EqualFunc(output[:len(mask)], mask, func(a, b validators.Dim) bool {
		return a.Size == b.Size && (a.Symbol == "") == (b.Symbol == "")
	})
}

// worstExpected names the case in which an output differs most from its expected values, if a check that fails has one.
func worstExpected(checks []evidence.Check, output string) string {
	at := slices.IndexFunc(checks, func(c evidence.Check) bool {
		return c.Output == output && c.Verdict == evidence.VerdictFail && c.Case != nil
	})
	if at < 0 {
		return ""
	}
	return fmt.Sprintf("; case %d differs most", *checks[at].Case)
}

// exportedPrecision is the precision of the model's own numbers.
func exportedPrecision(m Maker) string {
	model := m.Inputs.Imported.Source.Model
	switch {
	case m.Inputs.Quantized != "":
		return validators.PrecisionInt8
	case model != nil && model.Tensors["bfloat16"] > 0:
		return validators.PrecisionBF16
	case model != nil && model.Tensors["float16"] > 0:
		return validators.PrecisionFP16
	}
	return validators.PrecisionFP32
}

// expectedLimits are the release's limits in a precision, or the default ones. What an output may lose in accuracy is for engines.
func expectedLimits(m Maker, precision string, output validators.TensorInfo) (validators.OutputLimits, error) {
	if limited, ok := m.Plan.Limits.Precisions[precision].Outputs[output.Name]; ok {
		return limited, nil
	}
	return validators.DefaultLimits(precision, output, m.Inputs.Cases.Record.Count)
}

// writeExpected writes the expected outputs in the shape of golden ones, under their names, and returns the folder.
func writeExpected(m Maker, golden *goldenset.Set, outputs []string) (folder string, err error) {
	if folder, err = os.MkdirTemp(m.Scratch, "expected-*"); err != nil {
		return "", err
	}
	for i, shard := range golden.Set.Shards {
		expected := make(map[string]tensor.Tensor, len(outputs))
		for _, name := range outputs {
			theirs, err := goldenset.ReadTensor(m.Inputs.Cases.Files[i].Path, cases.ExpectedPrefix+name)
			if err != nil {
				return "", err
			}
			ours, err := goldenset.ReadTensor(golden.Files[i].Path, name)
			if err != nil {
				return "", err
			}
			if err := fitsOutput(theirs, ours); err != nil {
				file := m.Inputs.Cases.Files[i].Name
				return "", m.Inputs.Cases.InShard(registry.Errorf(registry.CodeInvalid, "cases: %s: %s%s %w", file, cases.ExpectedPrefix, name, err), file)
			}
			theirs.Shape = ours.Shape // a column is a list in many frameworks
			expected[name] = theirs
		}
		if err := cases.WriteShard(filepath.Join(folder, shard.File), expected); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// fitsOutput checks that expected values have the type of an output and its shape, but for dimensions of 1.
func fitsOutput(expected, output tensor.Tensor) error {
	switch {
	case len(expected.Shape) == 0 || expected.Shape[0] != output.Shape[0]:
		return fmt.Errorf("has the shape %v, and there are %s", expected.Shape, registry.Count(int(output.Shape[0]), "case"))
	case !slices.Equal(withoutOnes(expected.Shape), withoutOnes(output.Shape)):
		return fmt.Errorf("has the shape %v, and the output %v", expected.Shape, output.Shape)
	case expected.DType.Class() != output.DType.Class():
		return fmt.Errorf("is %s, and the output is %s", expected.DType, output.DType)
	}
	return nil
}

func withoutOnes(shape []int64) []int64 {
	return slices.DeleteFunc(slices.Clone(shape), func(n int64) bool { return n == 1 })
}

// expectedOutputs are the outputs that the cases have expected values of, in all files or in none.
func expectedOutputs(m Maker) (outputs []string, err error) {
	for i, file := range m.Inputs.Cases.Files {
		names, err := expectedIn(file.Path)
		if err != nil {
			return nil, err
		}
		if i > 0 && !slices.Equal(names, outputs) {
			return nil, m.Inputs.Cases.InShard(registry.Errorf(registry.CodeInvalid,
				"cases: %s has expected outputs %q, and the files before have %q", file.Name, names, outputs), file.Name)
		}
		outputs = names
	}
	for _, name := range outputs {
		if _, ok := m.Inputs.Interface.Output(name); !ok {
			var known []string
			for _, output := range m.Inputs.Interface.Outputs {
				known = append(known, cases.ExpectedPrefix+output.Name)
			}
			return nil, registry.Errorf(registry.CodeInvalid, "cases: %s%s: the model has no output %.100q: want %s",
				cases.ExpectedPrefix, name, name, strings.Join(known, " or "))
		}
	}
	return outputs, nil
}

// expectedIn lists the outputs that a file of cases has expected values of.
func expectedIn(path string) (outputs []string, err error) {
	f, err := tensorfile.Open(path, tensorfile.Limits{})
	if err != nil {
		return nil, cases.TensorError(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, name := range f.Names() {
		if output, ok := strings.CutPrefix(name, cases.ExpectedPrefix); ok {
			outputs = append(outputs, output)
		}
	}
	slices.Sort(outputs)
	return outputs, nil
}
