package cases

import (
	"math/rand/v2"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// generatedShard is the one shard of generated cases.
const generatedShard = "cases-00000.safetensors"

// Generate makes count seeded smoke cases: standard normal numbers for floats,
// 0 and 1 for all else, so that they are valid masks and token identifiers. Free
// dimensions have their optimum of the interface's dims, or 1. The same seed gives
// the same bytes on every machine.
func Generate(count int, seed uint64, iface validators.Interface, scratch string) (Set, error) {
	random := rand.New(rand.NewPCG(seed, 0x6d6c70726f6d6f74)) //nolint:gosec // the same numbers for the same seed are the point
	tensors := make(map[string]tensor.Tensor, len(iface.Inputs))
	for _, input := range iface.Inputs {
		t, err := generate(random, int64(count), input, iface)
		if err != nil {
			return Set{}, registry.Errorf(registry.CodeInvalid, "generated cases: input %q: %w", input.Name, err)
		}
		tensors[input.Name] = t
	}
	path := filepath.Join(scratch, generatedShard)
	if err := WriteShard(path, tensors); err != nil {
		return Set{}, err
	}
	cs := Set{Record: registry.CaseSet{Origin: registry.OriginGenerated}}
	input, err := toolchain.FileInput(toolchain.RoleCases, generatedShard, path)
	if err != nil {
		return Set{}, err
	}
	cs.Add(input, count)
	return cs, nil
}

func generate(random *rand.Rand, count int64, input validators.TensorInfo,
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
	switch input.DType {
	case tensor.Float32:
		return fill(n, shape, func() float32 { return float32(random.NormFloat64()) })
	case tensor.Float64:
		return fill(n, shape, random.NormFloat64)
	case tensor.Int64:
		return fill(n, shape, func() int64 { return random.Int64N(2) })
	case tensor.Int32:
		return fill(n, shape, func() int32 { return random.Int32N(2) })
	case tensor.Int8:
		return fill(n, shape, func() int8 { return int8(random.Int32N(2)) })
	case tensor.Uint8:
		return fill(n, shape, func() uint8 { return uint8(random.Int32N(2)) })
	case tensor.Bool:
		return fill(n, shape, func() bool { return random.Int32N(2) == 1 })
	default:
		return tensor.Tensor{}, registry.Errorf(registry.CodeInvalid,
			"no cases can be generated for dtype %s: record some and name their folder in cases:", input.DType)
	}
}

// maxGenerated bounds the elements of a generated tensor.
const maxGenerated = 1 << 26

func fill[T tensor.Scalar](n int64, shape []int64, next func() T) (tensor.Tensor, error) {
	values := make([]T, n)
	for i := range values {
		values[i] = next()
	}
	return tensor.New(values, shape...)
}
