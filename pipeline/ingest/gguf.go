package ingest

import (
	"maps"
	"math"
	"os"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/toolchains"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/gguf"
)

// checkGGUF checks what a spec wants of a GGUF file.
func checkGGUF(s *spec.Spec, header gguf.Header) error {
	if err := checkContext(s, header); err != nil {
		return err
	}
	return checkAsIs(s, header)
}

// checkAsIs wants the variants of llama.cpp to be the file as it is, with the precision that llama.cpp computes with. Other
// toolchains get the reference model, whose numbers are in full precision.
func checkAsIs(s *spec.Spec, header gguf.Header) error {
	precision, asIsBy := GgufPrecision(header), toolchains.AsIs(spec.FormatGGUF)
	for _, v := range s.Variants {
		asIs := v.Quantize != nil && v.Quantize.Method == spec.MethodNone && v.Model.Written == ""
		if asIs && v.Precision != precision {
			return registry.Errorf(registry.CodeInvalid, "%s: variant %s: %s is %s, with which llama.cpp computes in %s: name the variant so",
				s.File, v.Name, s.Source.Path.Written, header, precision)
		}
		for _, t := range s.Targets {
			if !slices.Contains(t.Variants, v.Name) {
				continue
			}
			switch taken := t.Toolchain.Name == asIsBy; {
			case asIs && !taken:
				return registry.WithHint(registry.Errorf(registry.CodeInvalid,
					"%s: target %s, variant %s: %s has the numbers of %s in full precision, and only %s takes the file as it is",
					s.File, t.Name, v.Name, t.Toolchain.Name, s.Source.Path.Written, asIsBy),
					"write toolchain: %s, or list variants of this target that are made of full precision, such as variants: [fp32, int4]", asIsBy)
			case taken && v.Quantize == nil:
				return registry.WithHint(registry.Errorf(registry.CodeInvalid,
					"%s: target %s, variant %s: %s takes %s as it is, which is %s, and computes in %s",
					s.File, t.Name, v.Name, asIsBy, s.Source.Path.Written, header, precision),
					"write variants: [{name: %s, quantize: {method: none}}]", precision)
			}
		}
	}
	return nil
}

// tokensDim is the dimension of tokens in the reference model of a GGUF file, as its importer calls it.
const tokensDim = "sequence"

// checkContext refuses longer sequences than the model was trained with, which llama.cpp does not take.
func checkContext(s *spec.Spec, header gguf.Header) error {
	if longest := s.Shapes.Dims()[tokensDim].Max; header.ContextLength > 0 && longest > int64(min(header.ContextLength, math.MaxInt64)) {
		return registry.Errorf(registry.CodeInvalid, "%s: shapes: %s is up to %d tokens, and %s has %d tokens of context: want at most these",
			s.File, tokensDim, longest, s.Source.Path.Written, header.ContextLength)
	}
	return nil
}

// WithinContext is an interface without longer sequences than the model was trained with.
func WithinContext(iface validators.Interface, header gguf.Header) validators.Interface {
	r, ok := iface.Dims[tokensDim]
	if !ok {
		r = validators.DefaultDimRange()
	}
	if most := int64(min(header.ContextLength, math.MaxInt64)); most > 0 && r.Max > most {
		r.Max, r.Opt, r.Min = most, min(r.Opt, most), min(r.Min, most)
	}
	dims := maps.Clone(iface.Dims)
	if dims == nil {
		dims = make(map[string]validators.DimRange)
	}
	dims[tokensDim], iface.Dims = r, dims
	return iface
}

// GgufPrecision is what llama.cpp computes products in: activations have 8 bits where weights are quantized. Otherwise its cache of keys
// and values is in fp16; weights in BF16 have activations rounded to bfloat16, which limits of fp16 allow for. The rounding of weights
// does not count: the reference model has them as the file does.
func GgufPrecision(header gguf.Header) string {
	if header.Quantized() {
		return validators.PrecisionInt8
	}
	return validators.PrecisionFP16
}

// maxGGUFParameters is how many parameters the reference model of a GGUF file can have: in fp32, within the 2 GiB of an ONNX file.
const maxGGUFParameters = 1 << 29

// checkGGUFFile lets a GGUF file pass of which a reference model can be made, and gives its header.
func checkGGUFFile(f *os.File) (gguf.Header, error) {
	if err := format.CheckFile(f, format.GGUF, bound.Limits{}); err != nil {
		return gguf.Header{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return gguf.Header{}, err
	}
	header, err := gguf.Read(f, info.Size())
	if err == nil && header.Parameters > maxGGUFParameters {
		err = registry.Errorf(registry.CodeInvalid,
			"%s: it has %d parameters, and its reference model, in fp32, can have at most %d: no engine of it could be compared with anything",
			f.Name(), header.Parameters, maxGGUFParameters)
	}
	return header, err
}
