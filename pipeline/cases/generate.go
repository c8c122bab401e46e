package cases

import (
	"math/rand/v2"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// generatedShard is the one shard of generated cases.
const generatedShard = "cases-00000.safetensors"

// Generate makes count seeded smoke cases from the draws of each input. Some values of some
// cases are boundary values: the least, the largest and zero. Free dimensions have their optimum of
// the interface's dims, or 1. The same seed makes the same bytes on every machine. Errors:
// CodeInvalid, also for a draw of values that an input does not take.
func Generate(count int, seed uint64, iface validators.Interface, draws map[string]Draw, scratch string) (Set, error) {
	random := rand.New(rand.NewPCG(seed, 0x6d6c70726f6d6f74)) //nolint:gosec // the same numbers for the same seed are the point
	tensors := make(map[string]tensor.Tensor, len(iface.Inputs))
	for _, input := range iface.Inputs {
		t, err := generate(random, int64(count), input, draws[input.Name], iface)
		if err != nil {
			return Set{}, registry.Errorf(registry.CodeInvalid, "generated cases: input %q: %w", input.Name, err)
		}
		tensors[input.Name] = t
	}
	path := filepath.Join(scratch, generatedShard)
	if err := WriteShard(path, tensors); err != nil {
		return Set{}, err
	}
	cs := Set{Record: artifact.CaseSet{Origin: artifact.OriginGenerated}}
	input, err := toolchain.FileInput(toolchain.RoleCases, generatedShard, path)
	if err != nil {
		return Set{}, err
	}
	cs.Add(input, count)
	return cs, nil
}

func generate(random *rand.Rand, count int64, input validators.TensorInfo, draw Draw,
	iface validators.Interface) (tensor.Tensor, error) {
	shape := []int64{count}
	for i, dim := range input.Shape {
		if i == 0 && iface.Allows(dim, 1) {
			continue // the case dimension is the batch
		}
		shape = append(shape, iface.OptSize(dim))
	}
	n := int64(1)
	for _, d := range shape {
		if n *= d; n > maxGenerated {
			return tensor.Tensor{}, registry.Errorf(registry.CodeInvalid,
				"shape %v is too large to generate: record cases, or set shapes: smaller", shape)
		}
	}
	if input.DType == validators.Text {
		return tensor.Tensor{}, registry.WithHint(registry.Errorf(registry.CodeInvalid,
			"input %q takes text, for which no cases can be generated: record some and name their folder in cases:", input.Name),
			"from a table with a column for each input: mlpromote init MODEL --cases FILE.csv")
	}
	if err := draw.Check(input.DType); err != nil {
		return tensor.Tensor{}, err
	}
	return filled(input.DType, n, shape, newSampler(random, draw, input.DType, count, shape[1:]).next)
}

// filled is a tensor of n numbers that next gives. Errors: CodeInvalid for a type that cannot be generated.
func filled(dtype tensor.DType, n int64, shape []int64, next func() float64) (tensor.Tensor, error) {
	switch dtype {
	case tensor.Float32:
		return fill[float32](n, shape, next)
	case tensor.Float64:
		return fill[float64](n, shape, next)
	case tensor.Float16:
		values := make([]float64, n)
		for i := range values {
			values[i] = next()
		}
		return tensor.NewFloat16(values, shape...)
	case tensor.Int64:
		return fill[int64](n, shape, next)
	case tensor.Int32:
		return fill[int32](n, shape, next)
	case tensor.Int16:
		return fill[int16](n, shape, next)
	case tensor.Int8:
		return fill[int8](n, shape, next)
	case tensor.Uint8:
		return fill[uint8](n, shape, next)
	case tensor.Uint16:
		return fill[uint16](n, shape, next)
	case tensor.Uint32:
		return fill[uint32](n, shape, next)
	case tensor.Bool:
		values := make([]bool, n)
		for i := range values {
			values[i] = next() != 0
		}
		return tensor.New(values, shape...)
	default:
		return tensor.Tensor{}, registry.Errorf(registry.CodeInvalid,
			"no cases can be generated for dtype %s: record some and name their folder in cases:", dtype)
	}
}

// maxGenerated bounds the elements of a generated tensor.
const maxGenerated = 1 << 26

func fill[T float32 | float64 | int64 | int32 | int16 | int8 | uint8 | uint16 | uint32](
	n int64, shape []int64, next func() float64) (tensor.Tensor, error) {
	values := make([]T, n)
	for i := range values {
		values[i] = T(next())
	}
	return tensor.New(values, shape...)
}
