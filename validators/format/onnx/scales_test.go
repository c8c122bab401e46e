package onnx_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/formattest"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// op is a node with a name, its inputs and its output.
func op(name, kind, output string, inputs ...string) formattest.Msg {
	n := formattest.Msg{}
	for _, in := range inputs {
		n = n.Str(1, in)
	}
	return formattest.Msg{}.Sub(1, n.Str(2, output).Str(3, name).Str(4, kind))
}

// with adds an attribute that is a whole number to the node of op.
func with(n formattest.Msg, name string, value int64) formattest.Msg {
	_, _, size := protowire.ConsumeTag(n)
	inner, _ := protowire.ConsumeBytes(n[size:])
	return formattest.Msg{}.Sub(1, formattest.Msg(inner).Sub(5, formattest.Msg{}.Str(1, name).Num(3, value)))
}

// scaleConst is an initializer with raw bytes.
func scaleConst(name string, dtype int64, raw []byte, dims ...int64) formattest.Msg {
	return formattest.Msg{}.Sub(5, tensorOf(name, dtype, raw, dims...))
}

func tensorOf(name string, dtype int64, raw []byte, dims ...int64) formattest.Msg {
	t := formattest.Msg{}
	for _, d := range dims {
		t = t.Num(1, d)
	}
	return t.Num(2, dtype).Str(8, name).Sub(9, raw)
}

// floats is a constant of float32: a scalar for one value.
func floats(name string, values ...float32) formattest.Msg {
	var dims []int64
	if len(values) > 1 {
		dims = []int64{int64(len(values))}
	}
	return scaleConst(name, 1, rawFloats(values...), dims...)
}

func rawFloats(values ...float32) (raw []byte) {
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return raw
}

func checkScales(data []byte) error {
	return onnx.CheckScales(bytes.NewReader(data), int64(len(data)), bound.Limits{}, nil)
}

// quantizedConv is a convolution as training with quantization leaves it, with parts that tests replace.
func quantizedConv(replaced map[string]formattest.Msg) formattest.Msg {
	var parts []formattest.Msg
	for _, part := range []struct {
		name string
		msg  formattest.Msg
	}{
		{"q", op("q", "QuantizeLinear", "xq", "x", "sx", "zx")},
		{"dq", op("dq", "DequantizeLinear", "xd", "xq", "sx", "zx")},
		{"dw", with(op("dw", "DequantizeLinear", "wd", "w", "sw", "zw"), "axis", 0)},
		{"db", with(op("db", "DequantizeLinear", "bd", "b", "sb"), "axis", 0)},
		{"conv", op("conv", "Conv", "y", "xd", "wd", "bd")},
		{"sx", floats("sx", 0.5)},
		{"zx", scaleConst("zx", 2, []byte{128})},
		{"w", scaleConst("w", 3, make([]byte, 4), 2, 2, 1, 1)},
		{"sw", floats("sw", 0.25, 0.5)},
		{"zw", scaleConst("zw", 3, []byte{0, 0}, 2)},
		{"b", scaleConst("b", 6, make([]byte, 8), 2)},
		{"sb", floats("sb", 0.125, 0.25)},
	} {
		if other, ok := replaced[part.name]; ok {
			part.msg = other
		}
		parts = append(parts, part.msg)
	}
	return formattest.ModelOf(formattest.GraphOf(parts...))
}

func TestScales(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, c := range map[string]struct {
		replaced map[string]formattest.Msg
		want     string
	}{
		"as it is":           {nil, ""},
		"no scale":           {map[string]formattest.Msg{"sx": floats("sx", 0)}, `QuantizeLinear "q": scale 0: want a finite number above 0`},
		"negative":           {map[string]formattest.Msg{"sw": floats("sw", 0.25, -0.5)}, `DequantizeLinear "dw": scale -0.5 at index 1: want a finite number above 0`},
		"not a number":       {map[string]formattest.Msg{"sb": floats("sb", nan, 0.25)}, `DequantizeLinear "db": scale NaN at index 0`},
		"infinite":           {map[string]formattest.Msg{"sx": floats("sx", inf)}, "scale +Inf"},
		"smallest":           {map[string]formattest.Msg{"sx": floats("sx", math.SmallestNonzeroFloat32), "sb": floats("sb", 0.25*math.SmallestNonzeroFloat32, 0)}, `"db": scale 0`},
		"too few for axis":   {map[string]formattest.Msg{"dw": with(op("dw", "DequantizeLinear", "wd", "w", "sw", "zw"), "axis", 2)}, `"dw": 2 scales along axis 2, where the tensor has 1`},
		"axis from the end":  {map[string]formattest.Msg{"dw": with(op("dw", "DequantizeLinear", "wd", "w", "sw", "zw"), "axis", -4)}, ""},
		"no such axis":       {map[string]formattest.Msg{"dw": with(op("dw", "DequantizeLinear", "wd", "w", "sw", "zw"), "axis", 4)}, `"dw": axis 4 of a tensor of 4 dimensions`},
		"axis before all":    {map[string]formattest.Msg{"dw": with(op("dw", "DequantizeLinear", "wd", "w", "sw", "zw"), "axis", -5)}, `"dw": axis -5 of a tensor of 4 dimensions`},
		"too few zeros":      {map[string]formattest.Msg{"zw": scaleConst("zw", 3, []byte{0}, 1)}, `"dw": 1 zero point and 2 scales: want as many`},
		"zero of other type": {map[string]formattest.Msg{"zw": scaleConst("zw", 2, []byte{0, 0}, 2)}, `"dw": its zero point is uint8, and what it dequantizes int8: want one type`},
		"zero of no integer": {map[string]formattest.Msg{"zx": floats("zx", 0)}, `"q": its zero point is float32: want an integer type`},
		"zero out of type": {map[string]formattest.Msg{"zx": formattest.Msg{}.Sub(5, formattest.Msg{}.Num(2, 2).Str(8, "zx").Sub(5, formattest.Msg{0xac, 0x02}))},
			`"q": zero point 300: want 0 to 255, as it is uint8`},
		"zero of a bias": {map[string]formattest.Msg{"db": with(op("db", "DequantizeLinear", "bd", "b", "sb", "zb"), "axis", 0),
			"b": append(scaleConst("b", 6, make([]byte, 8), 2), scaleConst("zb", 6, []byte{0, 0, 0, 0, 1, 0, 0, 0}, 2)...)}, `"db": zero point 1 at index 1: want 0 to 0, as it is int32`},
		"another bias":             {map[string]formattest.Msg{"sb": floats("sb", 0.125, 0.26)}, `Conv "conv": the scale of its bias is 0.25999999046325684 at index 1: want that of its input times that of its weights, 0.25`},
		"a bias that is rounded":   {map[string]formattest.Msg{"sb": floats("sb", 0.125, 0.25000003)}, ""},
		"a bias of one scale":      {map[string]formattest.Msg{"sb": floats("sb", 0.125)}, `the scale of its bias is 0.125 at index 1`},
		"a bias of three scales":   {map[string]formattest.Msg{"sb": floats("sb", 1, 2, 3), "b": scaleConst("b", 6, make([]byte, 12), 3)}, `"conv": its bias has 3 scales and its weights have 2: want as many`},
		"a bias of floating point": {map[string]formattest.Msg{"conv": op("conv", "Conv", "y", "xd", "wd", "sb"), "sb": floats("sb", 7, 9)}, ""},
		"another pair":             {map[string]formattest.Msg{"dq": op("dq", "DequantizeLinear", "xd", "xq", "sw0", "zx"), "zx": append(scaleConst("zx", 2, []byte{128}), floats("sw0", 0.75)...)}, `DequantizeLinear "dq": its scale 0.75 at index 0 is not that of QuantizeLinear "q" before it, 0.5`},
		"a pair without zero":      {map[string]formattest.Msg{"dq": op("dq", "DequantizeLinear", "xd", "xq", "sx")}, `"dq": its zero point 0 at index 0 is not that of QuantizeLinear "q" before it, 128`},
		"a pair on other axes": {map[string]formattest.Msg{"q": with(op("q", "QuantizeLinear", "xq", "x", "sw"), "axis", 0), "dq": op("dq", "DequantizeLinear", "xd", "xq", "sw")},
			`"dq": its axis 1 is not that of QuantizeLinear "q" before it, 0`},
		"a pair that is computed": {map[string]formattest.Msg{"dq": op("dq", "DequantizeLinear", "xd", "xq", "computed", "zx")}, ""},
		"a node without a name":   {map[string]formattest.Msg{"q": op("", "QuantizeLinear", "xq", "x", "sx", "zx"), "sx": floats("sx", -1)}, `QuantizeLinear that makes "xq": scale -1`},
		"an operator on integers": {map[string]formattest.Msg{"conv": op("qc", "QLinearConv", "y", "xq", "sx", "zx", "w", "sw", "zw", "sx", "zx"), "sw": floats("sw", 0.25, 0)}, `scale 0 at index 1`},
		"a result's scale":        {map[string]formattest.Msg{"conv": append(op("qm", "QLinearMatMul", "y", "xq", "sx", "zx", "w", "sw", "zw", "sy", "zx"), floats("sy", 0)...)}, `QLinearMatMul "qm": scale 0`},
		"a matrix of scales":      {map[string]formattest.Msg{"sx": scaleConst("sx", 1, rawFloats(1, 1, 1, 1), 2, 2), "zx": scaleConst("zx", 2, make([]byte, 4), 2, 2)}, `"q": its scales have 2 dimensions: want one, or a block_size`},
		"too many numbers":        {map[string]formattest.Msg{"sx": scaleConst("sx", 1, rawFloats(1, 1))}, "8 bytes of a tensor that has 1 elements of 4 bytes"},
		"no numbers":              {map[string]formattest.Msg{"sx": formattest.Msg{}.Sub(5, formattest.Msg{}.Num(2, 1).Str(8, "sx"))}, "0 numbers of a tensor that has 1 elements"},
		"more than fit":           {map[string]formattest.Msg{"sx": formattest.Msg{}.Sub(5, formattest.Msg{}.Num(1, 1<<40).Num(2, 1).Str(8, "sx"))}, "at most 16777216 are allowed"},
		"more than there can be":  {map[string]formattest.Msg{"sx": formattest.Msg{}.Sub(5, formattest.Msg{}.Num(1, 1<<40).Num(1, 1<<40).Num(2, 1).Str(8, "sx"))}, "more elements than there can be"},
		"too many dimensions":     {map[string]formattest.Msg{"sx": scaleConst("sx", 1, rawFloats(1), 1, 1, 1, 1, 1, 1, 1, 1, 1)}, "want at most 8, none below 0"},
		"not packed":              {map[string]formattest.Msg{"sx": formattest.Msg{}.Sub(5, formattest.Msg{}.Num(2, 1).Str(8, "sx").Num(5, 1))}, "not packed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := quantizedConv(c.replaced)
			if _, err := read(t, data); err != nil && c.want == "" {
				t.Fatal(err)
			}
			err := checkScales(data)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%v, want no error", err)
			case c.want != "" && (registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want CodeInvalid with %q", err, c.want)
			}
		})
	}
}

// Scales are read in every type and form that ONNX has for them.
func TestScaleForms(t *testing.T) {
	t.Parallel()
	quantize := op("q", "QuantizeLinear", "y", "x", "s")
	constantNode := func(name string, t formattest.Msg) formattest.Msg {
		return formattest.Msg{}.Sub(1, formattest.Msg{}.Str(2, name).Str(4, "Constant").Sub(5, formattest.Msg{}.Str(1, "value").Sub(5, t)))
	}
	for name, c := range map[string]struct {
		part formattest.Msg
		want string
	}{
		"float16":             {scaleConst("s", 10, []byte{0x00, 0x3c}), ""},
		"float16, none":       {scaleConst("s", 10, []byte{0x00, 0x80}), "scale -0"},
		"float16, infinite":   {scaleConst("s", 10, []byte{0x00, 0x7c}), "scale +Inf"},
		"float16, no number":  {scaleConst("s", 10, []byte{0x01, 0x7c}), "scale NaN"},
		"float16, subnormal":  {scaleConst("s", 10, []byte{0x01, 0x80}), "scale -5.960464477539063e-08"},
		"float16 as int32":    {formattest.Msg{}.Sub(5, formattest.Msg{}.Num(2, 10).Str(8, "s").Sub(5, protowire.AppendVarint(nil, 0xbc00))), "scale -1"},
		"bfloat16":            {scaleConst("s", 16, []byte{0x80, 0xbf}), "scale -1"},
		"float64":             {scaleConst("s", 11, binary.LittleEndian.AppendUint64(nil, math.Float64bits(-2))), "scale -2"},
		"float64 as a list":   {formattest.Msg{}.Sub(5, formattest.Msg{}.Num(2, 11).Str(8, "s").Sub(10, binary.LittleEndian.AppendUint64(nil, math.Float64bits(-2)))), "scale -2"},
		"float32 as a list":   {formattest.Msg{}.Sub(5, formattest.Msg{}.Num(2, 1).Str(8, "s").Sub(4, rawFloats(-3))), "scale -3"},
		"a list of others":    {formattest.Msg{}.Sub(5, formattest.Msg{}.Num(2, 1).Str(8, "s").Sub(10, rawFloats(-3, 0))), "0 numbers of a tensor that has 1"},
		"packed dimensions":   {formattest.Msg{}.Sub(5, formattest.Msg{}.Sub(1, formattest.Msg{2}).Num(2, 1).Str(8, "s").Sub(9, rawFloats(1, -4))), "scale -4 at index 1"},
		"a Constant node":     {constantNode("s", tensorOf("", 1, rawFloats(-5))), "scale -5"},
		"another Constant":    {constantNode("t", tensorOf("", 1, rawFloats(-5))), ""},
		"of another operator": {formattest.Msg{}.Sub(1, formattest.Msg{}.Str(1, "x").Str(2, "z").Str(4, "QuantizeLinear").Str(7, "mine")), ""},
	} {
		err := checkScales(formattest.ModelOf(formattest.GraphOf(quantize, c.part)))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Scales of blocks have the shape of what they scale, with fewer along the axis.
func TestScalesOfBlocks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		block, axis int64
		shape       []int64
		want        string
	}{
		"whole blocks":     {4, 0, []int64{2, 3}, ""},
		"a part of one":    {5, 0, []int64{2, 3}, ""},
		"along the last":   {2, -1, []int64{8, 2}, ""},
		"one too many":     {4, 0, []int64{3, 3}, "scales of shape [3 3] for a tensor of shape [8 3] in blocks of 4 along axis 0: want [2 3]"},
		"one dimension":    {4, 0, []int64{6}, "scales of shape [6]"},
		"blocks of less":   {-1, 0, []int64{2, 3}, "block_size -1: want at least 1"},
		"no such axis":     {4, 2, []int64{2, 3}, "axis 2 of a tensor of 2 dimensions"},
		"not as it scales": {4, 0, []int64{2, 2}, "want [2 3]"},
	} {
		count := int64(1)
		for _, d := range c.shape {
			count *= d
		}
		ones := make([]float32, count)
		for i := range ones {
			ones[i] = 1
		}
		n := with(with(op("d", "DequantizeLinear", "y", "w", "s"), "axis", c.axis), "block_size", c.block)
		err := checkScales(formattest.ModelOf(formattest.GraphOf(n, scaleConst("w", 22, make([]byte, 12), 8, 3), scaleConst("s", 1, rawFloats(ones...), c.shape...))))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Scales in external data are read from there.
func TestExternalScales(t *testing.T) {
	t.Parallel()
	entry := func(key, value string) formattest.Msg { return formattest.Msg{}.Str(1, key).Str(2, value) }
	model := func(offset string) []byte {
		return formattest.ModelOf(formattest.GraphOf(op("q", "QuantizeLinear", "y", "x", "s"),
			formattest.Msg{}.Sub(5, formattest.Msg{}.Num(2, 1).Str(8, "s").Sub(13, entry("location", "data")).Sub(13, entry("offset", offset)).Num(14, 1))))
	}
	bad := errors.New("a disk that is gone")
	for name, c := range map[string]struct {
		offset string
		data   []byte
		opens  error
		want   string
	}{
		"fine":         {"4", rawFloats(-1, 2), nil, ""},
		"not above 0":  {"0", rawFloats(-1, 2), nil, `QuantizeLinear "q": scale -1`},
		"too short":    {"8", rawFloats(-1, 2), nil, `external data "data" has 8 bytes, and scales of 4 bytes start at byte 8`},
		"far too long": {"9223372036854775807", rawFloats(1), nil, "start at byte 9223372036854775807"},
		"unreadable":   {"0", nil, bad, bad.Error()},
	} {
		data := model(c.offset)
		err := onnx.CheckScales(bytes.NewReader(data), int64(len(data)), bound.Limits{}, func(string) (io.ReaderAt, int64, error) {
			return bytes.NewReader(c.data), int64(len(c.data)), c.opens
		})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if err := checkScales(model("0")); err == nil || !strings.Contains(err.Error(), "not at hand") {
		t.Errorf("without a way to read it: %v", err)
	}
}

// Whatever the bytes are, the answer has a code, in bounded memory.
func FuzzScales(f *testing.F) {
	seedModels(f)
	f.Add([]byte(quantizedConv(nil)))
	lim := bound.Limits{MaxFields: 100_000, MaxMemory: 1 << 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := onnx.CheckScales(bytes.NewReader(data), int64(len(data)), lim, nil)
		if err != nil && registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%v, code %q", err, registry.CodeOf(err))
		}
	})
}
