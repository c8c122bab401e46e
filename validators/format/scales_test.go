package format_test

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
	"mlpromote.dev/mlpromote/validators/format"
)

// op is a node with a name, its inputs and its output.
func op(name, kind, output string, inputs ...string) msg {
	n := msg{}
	for _, in := range inputs {
		n = n.str(1, in)
	}
	return msg{}.sub(1, n.str(2, output).str(3, name).str(4, kind))
}

// with adds an attribute that is a whole number to the node of op.
func with(n msg, name string, value int64) msg {
	_, _, size := protowire.ConsumeTag(n)
	inner, _ := protowire.ConsumeBytes(n[size:])
	return msg{}.sub(1, msg(inner).sub(5, msg{}.str(1, name).num(3, value)))
}

// scaleConst is an initializer with raw bytes.
func scaleConst(name string, dtype int64, raw []byte, dims ...int64) msg {
	return msg{}.sub(5, tensorOf(name, dtype, raw, dims...))
}

func tensorOf(name string, dtype int64, raw []byte, dims ...int64) msg {
	t := msg{}
	for _, d := range dims {
		t = t.num(1, d)
	}
	return t.num(2, dtype).str(8, name).sub(9, raw)
}

// floats is a constant of float32: a scalar for one value.
func floats(name string, values ...float32) msg {
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
	return format.CheckScales(bytes.NewReader(data), int64(len(data)), format.Limits{}, nil)
}

// quantizedConv is a convolution as training with quantization leaves it, with parts that tests replace.
func quantizedConv(replaced map[string]msg) msg {
	var parts []msg
	for _, part := range []struct {
		name string
		msg  msg
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
	return modelOf(graphOf(parts...))
}

func TestScales(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, c := range map[string]struct {
		replaced map[string]msg
		want     string
	}{
		"as it is":           {nil, ""},
		"no scale":           {map[string]msg{"sx": floats("sx", 0)}, `QuantizeLinear "q": scale 0: want a finite number above 0`},
		"negative":           {map[string]msg{"sw": floats("sw", 0.25, -0.5)}, `DequantizeLinear "dw": scale -0.5 at index 1: want a finite number above 0`},
		"not a number":       {map[string]msg{"sb": floats("sb", nan, 0.25)}, `DequantizeLinear "db": scale NaN at index 0`},
		"infinite":           {map[string]msg{"sx": floats("sx", inf)}, "scale +Inf"},
		"smallest":           {map[string]msg{"sx": floats("sx", math.SmallestNonzeroFloat32), "sb": floats("sb", 0.25*math.SmallestNonzeroFloat32, 0)}, `"db": scale 0`},
		"too few for axis":   {map[string]msg{"dw": with(op("dw", "DequantizeLinear", "wd", "w", "sw", "zw"), "axis", 2)}, `"dw": 2 scales along axis 2, where the tensor has 1`},
		"axis from the end":  {map[string]msg{"dw": with(op("dw", "DequantizeLinear", "wd", "w", "sw", "zw"), "axis", -4)}, ""},
		"no such axis":       {map[string]msg{"dw": with(op("dw", "DequantizeLinear", "wd", "w", "sw", "zw"), "axis", 4)}, `"dw": axis 4 of a tensor of 4 dimensions`},
		"axis before all":    {map[string]msg{"dw": with(op("dw", "DequantizeLinear", "wd", "w", "sw", "zw"), "axis", -5)}, `"dw": axis -5 of a tensor of 4 dimensions`},
		"too few zeros":      {map[string]msg{"zw": scaleConst("zw", 3, []byte{0}, 1)}, `"dw": 1 zero point and 2 scales: want as many`},
		"zero of other type": {map[string]msg{"zw": scaleConst("zw", 2, []byte{0, 0}, 2)}, `"dw": its zero point is uint8, and what it dequantizes int8: want one type`},
		"zero of no integer": {map[string]msg{"zx": floats("zx", 0)}, `"q": its zero point is float32: want an integer type`},
		"zero out of type": {map[string]msg{"zx": msg{}.sub(5, msg{}.num(2, 2).str(8, "zx").sub(5, msg{0xac, 0x02}))},
			`"q": zero point 300: want 0 to 255, as it is uint8`},
		"zero of a bias": {map[string]msg{"db": with(op("db", "DequantizeLinear", "bd", "b", "sb", "zb"), "axis", 0),
			"b": append(scaleConst("b", 6, make([]byte, 8), 2), scaleConst("zb", 6, []byte{0, 0, 0, 0, 1, 0, 0, 0}, 2)...)}, `"db": zero point 1 at index 1: want 0 to 0, as it is int32`},
		"another bias":             {map[string]msg{"sb": floats("sb", 0.125, 0.26)}, `Conv "conv": the scale of its bias is 0.25999999046325684 at index 1: want that of its input times that of its weights, 0.25`},
		"a bias that is rounded":   {map[string]msg{"sb": floats("sb", 0.125, 0.25000003)}, ""},
		"a bias of one scale":      {map[string]msg{"sb": floats("sb", 0.125)}, `the scale of its bias is 0.125 at index 1`},
		"a bias of three scales":   {map[string]msg{"sb": floats("sb", 1, 2, 3), "b": scaleConst("b", 6, make([]byte, 12), 3)}, `"conv": its bias has 3 scales and its weights have 2: want as many`},
		"a bias of floating point": {map[string]msg{"conv": op("conv", "Conv", "y", "xd", "wd", "sb"), "sb": floats("sb", 7, 9)}, ""},
		"another pair":             {map[string]msg{"dq": op("dq", "DequantizeLinear", "xd", "xq", "sw0", "zx"), "zx": append(scaleConst("zx", 2, []byte{128}), floats("sw0", 0.75)...)}, `DequantizeLinear "dq": its scale 0.75 at index 0 is not that of QuantizeLinear "q" before it, 0.5`},
		"a pair without zero":      {map[string]msg{"dq": op("dq", "DequantizeLinear", "xd", "xq", "sx")}, `"dq": its zero point 0 at index 0 is not that of QuantizeLinear "q" before it, 128`},
		"a pair on other axes": {map[string]msg{"q": with(op("q", "QuantizeLinear", "xq", "x", "sw"), "axis", 0), "dq": op("dq", "DequantizeLinear", "xd", "xq", "sw")},
			`"dq": its axis 1 is not that of QuantizeLinear "q" before it, 0`},
		"a pair that is computed": {map[string]msg{"dq": op("dq", "DequantizeLinear", "xd", "xq", "computed", "zx")}, ""},
		"a node without a name":   {map[string]msg{"q": op("", "QuantizeLinear", "xq", "x", "sx", "zx"), "sx": floats("sx", -1)}, `QuantizeLinear that makes "xq": scale -1`},
		"an operator on integers": {map[string]msg{"conv": op("qc", "QLinearConv", "y", "xq", "sx", "zx", "w", "sw", "zw", "sx", "zx"), "sw": floats("sw", 0.25, 0)}, `scale 0 at index 1`},
		"a result's scale":        {map[string]msg{"conv": append(op("qm", "QLinearMatMul", "y", "xq", "sx", "zx", "w", "sw", "zw", "sy", "zx"), floats("sy", 0)...)}, `QLinearMatMul "qm": scale 0`},
		"a matrix of scales":      {map[string]msg{"sx": scaleConst("sx", 1, rawFloats(1, 1, 1, 1), 2, 2), "zx": scaleConst("zx", 2, make([]byte, 4), 2, 2)}, `"q": its scales have 2 dimensions: want one, or a block_size`},
		"too many numbers":        {map[string]msg{"sx": scaleConst("sx", 1, rawFloats(1, 1))}, "8 bytes of a tensor that has 1 elements of 4 bytes"},
		"no numbers":              {map[string]msg{"sx": msg{}.sub(5, msg{}.num(2, 1).str(8, "sx"))}, "0 numbers of a tensor that has 1 elements"},
		"more than fit":           {map[string]msg{"sx": msg{}.sub(5, msg{}.num(1, 1<<40).num(2, 1).str(8, "sx"))}, "at most 16777216 are allowed"},
		"more than there can be":  {map[string]msg{"sx": msg{}.sub(5, msg{}.num(1, 1<<40).num(1, 1<<40).num(2, 1).str(8, "sx"))}, "more elements than there can be"},
		"too many dimensions":     {map[string]msg{"sx": scaleConst("sx", 1, rawFloats(1), 1, 1, 1, 1, 1, 1, 1, 1, 1)}, "want at most 8, none below 0"},
		"not packed":              {map[string]msg{"sx": msg{}.sub(5, msg{}.num(2, 1).str(8, "sx").num(5, 1))}, "not packed"},
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
	constantNode := func(name string, t msg) msg {
		return msg{}.sub(1, msg{}.str(2, name).str(4, "Constant").sub(5, msg{}.str(1, "value").sub(5, t)))
	}
	for name, c := range map[string]struct {
		part msg
		want string
	}{
		"float16":             {scaleConst("s", 10, []byte{0x00, 0x3c}), ""},
		"float16, none":       {scaleConst("s", 10, []byte{0x00, 0x80}), "scale -0"},
		"float16, infinite":   {scaleConst("s", 10, []byte{0x00, 0x7c}), "scale +Inf"},
		"float16, no number":  {scaleConst("s", 10, []byte{0x01, 0x7c}), "scale NaN"},
		"float16, subnormal":  {scaleConst("s", 10, []byte{0x01, 0x80}), "scale -5.960464477539063e-08"},
		"float16 as int32":    {msg{}.sub(5, msg{}.num(2, 10).str(8, "s").sub(5, protowire.AppendVarint(nil, 0xbc00))), "scale -1"},
		"bfloat16":            {scaleConst("s", 16, []byte{0x80, 0xbf}), "scale -1"},
		"float64":             {scaleConst("s", 11, binary.LittleEndian.AppendUint64(nil, math.Float64bits(-2))), "scale -2"},
		"float64 as a list":   {msg{}.sub(5, msg{}.num(2, 11).str(8, "s").sub(10, binary.LittleEndian.AppendUint64(nil, math.Float64bits(-2)))), "scale -2"},
		"float32 as a list":   {msg{}.sub(5, msg{}.num(2, 1).str(8, "s").sub(4, rawFloats(-3))), "scale -3"},
		"a list of others":    {msg{}.sub(5, msg{}.num(2, 1).str(8, "s").sub(10, rawFloats(-3, 0))), "0 numbers of a tensor that has 1"},
		"packed dimensions":   {msg{}.sub(5, msg{}.sub(1, msg{2}).num(2, 1).str(8, "s").sub(9, rawFloats(1, -4))), "scale -4 at index 1"},
		"a Constant node":     {constantNode("s", tensorOf("", 1, rawFloats(-5))), "scale -5"},
		"another Constant":    {constantNode("t", tensorOf("", 1, rawFloats(-5))), ""},
		"of another operator": {msg{}.sub(1, msg{}.str(1, "x").str(2, "z").str(4, "QuantizeLinear").str(7, "mine")), ""},
	} {
		err := checkScales(modelOf(graphOf(quantize, c.part)))
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
		err := checkScales(modelOf(graphOf(n, scaleConst("w", 22, make([]byte, 12), 8, 3), scaleConst("s", 1, rawFloats(ones...), c.shape...))))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Scales in external data are read from there.
func TestExternalScales(t *testing.T) {
	t.Parallel()
	entry := func(key, value string) msg { return msg{}.str(1, key).str(2, value) }
	model := func(offset string) []byte {
		return modelOf(graphOf(op("q", "QuantizeLinear", "y", "x", "s"),
			msg{}.sub(5, msg{}.num(2, 1).str(8, "s").sub(13, entry("location", "data")).sub(13, entry("offset", offset)).num(14, 1))))
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
		err := format.CheckScales(bytes.NewReader(data), int64(len(data)), format.Limits{}, func(string) (io.ReaderAt, int64, error) {
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
	lim := format.Limits{MaxFields: 100_000, MaxMemory: 1 << 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := format.CheckScales(bytes.NewReader(data), int64(len(data)), lim, nil)
		if err != nil && registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%v, code %q", err, registry.CodeOf(err))
		}
	})
}
