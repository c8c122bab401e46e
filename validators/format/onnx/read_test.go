package onnx_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/formattest"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// TestReadRealModels reads what the onnx package wrote (testdata/make.py).
func TestReadRealModels(t *testing.T) {
	t.Parallel()
	tests := []struct {
		file            string
		inputs, outputs string
		ops             map[string]int
		opsets          map[string]int64
		custom          []string
		external        []string
		bytes           int64
	}{
		{
			file: "linear.onnx", inputs: "x float32[batch,2]", outputs: "y float32[batch,3]",
			ops:    map[string]int{"ai.onnx.MatMul": 1, "ai.onnx.Cast": 1, "ai.onnx.Add": 1},
			opsets: map[string]int64{"ai.onnx": 17}, bytes: 2*3*4 + 3*2,
		},
		{
			file: "branches.onnx", inputs: "c bool[]; x float32[?,4]", outputs: "y float32[?,4]",
			ops:    map[string]int{"ai.onnx.If": 1, "ai.onnx.Loop": 1, "ai.onnx.Constant": 1, "ai.onnx.Identity": 1, "ai.onnx.Mul": 1, "ai.onnx.Neg": 1},
			opsets: map[string]int64{"ai.onnx": 17},
		},
		{
			file: "external.onnx", inputs: "x float32[8]", outputs: "y float32[8]",
			ops:    map[string]int{"ai.onnx.Gather": 1, "ai.onnx.Add": 1},
			opsets: map[string]int64{"ai.onnx": 17}, external: []string{"external.bin"}, bytes: 8*4 + 8*8,
		},
		{
			file: "functions.onnx", inputs: "x bfloat16[1]", outputs: "y sequence(bfloat16)",
			ops: map[string]int{
				"mine.Twice": 1, "acme.Stranger": 1, "com.microsoft.Gelu": 1,
				"ai.onnx.SequenceConstruct": 1, "ai.onnx.Add": 1,
			},
			opsets: map[string]int64{"ai.onnx": 17, "mine": 1, "acme": 1, "com.microsoft": 1}, custom: []string{"acme"},
		},
	}
	for _, tc := range tests {
		t.Run(tc.file, func(t *testing.T) {
			t.Parallel()
			m, err := format.OpenONNX("testdata/"+tc.file, bound.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "inputs", list(m.Inputs), tc.inputs)
			equal(t, "outputs", list(m.Outputs), tc.outputs)
			equal(t, "ops", m.Ops, tc.ops)
			equal(t, "opsets", m.Opsets, tc.opsets)
			equal(t, "custom domains", m.CustomDomains(), tc.custom)
			equal(t, "external data", m.ExternalData, tc.external)
			equal(t, "initializer bytes", m.InitializerBytes, tc.bytes)
			equal(t, "IR version", m.IRVersion, 8)
			equal(t, "producer", m.Producer, "make.py")
			equal(t, "nodes", m.Nodes, sum(maps.Values(m.Ops)))
		})
	}
}

func TestReadDetails(t *testing.T) {
	t.Parallel()
	m, err := read(t, formattest.Testdata(t, "linear.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "metadata", m.Metadata, map[string]string{"purpose": "test"})
	equal(t, "producer version", m.ProducerVersion, "1")
	equal(t, "shape", m.Inputs[0].Shape, []onnx.Dim{{Param: "batch"}, {Known: true, Value: 2}})
	m, err = read(t, formattest.Testdata(t, "external.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "external bytes", m.ExternalBytes, map[string]int64{"external.bin": 96})
	m, err = read(t, formattest.Testdata(t, "functions.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "functions", m.Functions, []string{"mine.Twice"})
}

// The operator that makes an output is that of the main graph, wherever its node stands, and none of a
// subgraph that has the same name.
func TestProducers(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]map[string]string{
		"linear.onnx": {"y": "Add"}, "external.onnx": {"y": "Add"}, "functions.onnx": {"y": "SequenceConstruct"},
	} {
		m, err := read(t, formattest.Testdata(t, file))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "producers of "+file, m.Producers, want)
	}
	output := func(name string) formattest.Msg {
		return formattest.Msg{}.Str(1, name).Sub(2, formattest.Msg{}.Sub(1, formattest.Msg{}.Num(1, 1)))
	}
	inner := formattest.Msg{}.Sub(1, formattest.Msg{}.Str(2, "y").Str(4, "Neg")).Sub(12, output("y"))
	graph := formattest.Msg{}.Sub(12, output("y")).Sub(12, output("x")).
		Sub(1, formattest.Msg{}.Str(4, "Split").Str(2, "other").Str(2, "y")).
		Sub(1, formattest.Msg{}.Str(2, "z").Str(4, "If").Sub(5, formattest.Msg{}.Str(1, "then_branch").Sub(6, inner)))
	m, err := read(t, formattest.ModelOf(graph))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "producers", m.Producers, map[string]string{"y": "Split"})
}

func TestValueTypes(t *testing.T) {
	t.Parallel()
	float := formattest.Msg{}.Sub(1, formattest.Msg{}.Num(1, 1))
	tests := []struct {
		name string
		typ  formattest.Msg
		want string
	}{
		{"unknown rank", float, "float32[...]"},
		{"scalar", formattest.Msg{}.Sub(1, formattest.Msg{}.Num(1, 7).Sub(2, formattest.Msg{})), "int64[]"},
		{"minus one", formattest.Msg{}.Sub(1, formattest.Msg{}.Num(1, 10).Sub(2, formattest.Msg{}.Sub(1, formattest.Msg{}.Num(1, -1)).Sub(1, formattest.Msg{}.Num(1, 0)))), "float16[?,0]"},
		{"map", formattest.Msg{}.Sub(5, formattest.Msg{}.Num(1, 7).Sub(2, float)), "map(int64,float32)"},
		{"sequence of maps", formattest.Msg{}.Sub(4, formattest.Msg{}.Sub(1, formattest.Msg{}.Sub(5, formattest.Msg{}.Num(1, 8).Sub(2, float)))), "sequence(map(string,float32))"},
		{"optional", formattest.Msg{}.Sub(9, formattest.Msg{}.Sub(1, float)), "optional(float32)"},
		{"sparse", formattest.Msg{}.Sub(8, formattest.Msg{}.Num(1, 11)), "sparse(float64)"},
		{"later type", formattest.Msg{}.Sub(1, formattest.Msg{}.Num(1, 99)), "dtype99[...]"},
		{"no type", formattest.Msg{}, "undefined[...]"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m, err := read(t, formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(11, formattest.Msg{}.Str(1, "v").Sub(2, tc.typ)))))
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "type", m.Inputs[0].String(), tc.want)
		})
	}
}

// TestTruncation cuts real models at every byte: every cut must be refused as
// invalid, and a cut inside a field must name the place.
func TestTruncation(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"linear.onnx", "branches.onnx", "external.onnx"} {
		data := formattest.Testdata(t, file)
		opsetLen := len(data) - bytes.LastIndexByte(data, 0x42)
		for n := range len(data) - opsetLen {
			_, err := read(t, data[:n])
			formattest.WantCode(t, err, registry.CodeInvalid)
			place := fmt.Sprintf("truncated at byte %d of at least ", n)
			ending := fmt.Sprintf("truncated at byte %d:", n)
			clean := strings.Contains(err.Error(), "no graph") || strings.Contains(err.Error(), "no operator set")
			if msg := err.Error(); !clean && !strings.Contains(msg, place) && !strings.Contains(msg, ending) {
				t.Fatalf("%s cut at %d: %v", file, n, err)
			}
		}
	}
}

func TestTruncatedPlace(t *testing.T) {
	t.Parallel()
	data := formattest.Msg{}.Num(1, 8).Sub(7, make(formattest.Msg, 1000))[:500]
	_, err := read(t, data)
	formattest.WantCode(t, err, registry.CodeInvalid)
	if want := "truncated at byte 500 of at least 1005: field 7 of ModelProto at byte 2"; !strings.Contains(err.Error(), want) {
		t.Errorf("%q does not say %q", err, want)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		data formattest.Msg
		want string
	}{
		{"nothing", formattest.Msg{}, "no graph"},
		{"no graph", formattest.Msg{}.Num(1, 8).Sub(8, formattest.Opset("", 17)), "no graph"},
		{"no opset", formattest.Msg{}.Num(1, 8).Sub(7, formattest.GraphOf()), "no operator set"},
		{"no version", formattest.Msg{}.Sub(7, formattest.GraphOf()).Sub(8, formattest.Opset("", 17)), "IR version 0"},
		{"no outputs", formattest.ModelOf(formattest.Msg{}.Sub(1, formattest.Node("Relu"))), "no outputs"},
		{"two graphs", formattest.Small().Sub(7, formattest.GraphOf()), "second graph"},
		{"opset zero", formattest.Small().Sub(8, formattest.Opset("ai.onnx.ml", 0)), "versions start at 1"},
		{"opset twice", formattest.Small().Sub(8, formattest.Opset("ai.onnx", 18)), "version 17 and as version 18"},
		{"wrong wire type", formattest.Msg{}.Str(1, "8"), "wire type"},
		{"group", formattest.Msg{0x0b}, "wire type 3"},
		{"field zero", formattest.Msg{0x00, 0x00}, "impossible number"},
		{"endless varint", formattest.Msg(strings.Repeat("\xff", 20)), "more than 64 bits"},
		{"child larger than parent", formattest.ModelOf(formattest.Msg{0x0a, 0x7f, 0x0a}), "the message around it ends"},
		{"node without operator", formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(1, formattest.Msg{}.Str(1, "x")))), "without an operator"},
		{"node of a wrong wire type", formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Num(1, 1))), "field 1 of GraphProto"},
		{"input without name", formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(11, formattest.Msg{}))), "without a name"},
		{"negative dimension", formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(5, formattest.Msg{}.Num(1, -3).Num(2, 1)))), "dimension -3"},
		{"too many elements", formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(5, formattest.Msg{}.Num(1, 1<<40).Num(1, 1<<40)))), "more elements"},
		{"no location", formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(5, formattest.External("", "", "")))), "without a location"},
		{"two locations", formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(5, append(formattest.External("a", "", ""), formattest.External("b", "", "")...)))), "two locations"},
		{"bad offset", formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(5, formattest.External("a", "-1", "")))), `offset "-1"`},
		{"offset overflow", formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(5, formattest.External("a", "9223372036854775807", "8")))), "beyond any file"},
		{"long name", formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(1, formattest.Node(strings.Repeat("a", 1<<17))))), "at most 65536"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := read(t, tc.data)
			formattest.WantCode(t, err, registry.CodeInvalid)
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%q does not say %q", err, tc.want)
			}
		})
	}
}

func TestMemoryAddress(t *testing.T) {
	t.Parallel()
	attack := formattest.External("*/_ORT_MEM_ADDR_/*", "4096", "65536")
	constant := formattest.Node("Constant").Sub(5, formattest.Msg{}.Str(1, "value").Sub(5, attack))
	for name, graph := range map[string]formattest.Msg{
		"initializer": formattest.GraphOf(formattest.Msg{}.Sub(5, attack)),
		"sparse":      formattest.GraphOf(formattest.Msg{}.Sub(15, formattest.Msg{}.Sub(2, attack))),
		"attribute":   formattest.GraphOf(formattest.Msg{}.Sub(1, constant)),
		"subgraph":    formattest.GraphOf(formattest.Msg{}.Sub(1, formattest.Node("If").Sub(5, formattest.Msg{}.Sub(6, formattest.Msg{}.Sub(1, constant))))),
	} {
		_, err := read(t, formattest.ModelOf(graph))
		if registry.CodeOf(err) != registry.CodeUnsafe {
			t.Errorf("%s: %v, want unsafe", name, err)
		}
	}
	_, err := read(t, formattest.Small().Sub(25, formattest.Msg{}.Str(1, "F").Sub(7, constant)))
	formattest.WantCode(t, err, registry.CodeUnsafe)
	_, err = read(t, formattest.Small().Sub(20, formattest.Msg{}.Sub(2, formattest.GraphOf(formattest.Msg{}.Sub(1, constant)))))
	formattest.WantCode(t, err, registry.CodeUnsafe)
}

func TestLimits(t *testing.T) {
	t.Parallel()
	many := formattest.Msg{}
	for i := range 100 {
		many = many.Sub(1, formattest.Node("Relu")).Sub(5, formattest.Msg{}.Num(2, 1).Str(8, fmt.Sprint("w", i)))
	}
	tests := []struct {
		name string
		data formattest.Msg
		lim  bound.Limits
		want string
	}{
		{"bytes", formattest.Small(), bound.Limits{MaxBytes: 10}, "at most 10"},
		{"depth", formattest.Nested(4), bound.Limits{MaxDepth: 3}, "nested more than 3"},
		{"default depth", formattest.Nested(33), bound.Limits{}, "nested more than 32"},
		{"nodes", formattest.ModelOf(formattest.GraphOf(many)), bound.Limits{MaxNodes: 99}, "more than 99 nodes"},
		{"tensors", formattest.ModelOf(formattest.GraphOf(many)), bound.Limits{MaxTensors: 99}, "more than 99 tensors"},
		{"fields", formattest.ModelOf(formattest.GraphOf(many)), bound.Limits{MaxFields: 300}, "more protobuf fields"},
		{"memory", formattest.ModelOf(formattest.GraphOf(many)), bound.Limits{MaxMemory: 1000}, "more bytes of names"},
		{"types", formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(11, deepType(40)))), bound.Limits{}, "types are nested"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := onnx.Read(bytes.NewReader(tc.data), int64(len(tc.data)), tc.lim)
			formattest.WantCode(t, err, registry.CodeInvalid)
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%q does not say %q", err, tc.want)
			}
		})
	}
	if _, err := read(t, formattest.Nested(32)); err != nil {
		t.Errorf("32 levels: %v", err)
	}
	if _, err := read(t, formattest.ModelOf(formattest.GraphOf(many))); err != nil {
		t.Errorf("100 nodes: %v", err)
	}
}

func deepType(depth int) formattest.Msg {
	typ := formattest.Msg{}.Sub(1, formattest.Msg{}.Num(1, 1))
	for range depth {
		typ = formattest.Msg{}.Sub(4, formattest.Msg{}.Sub(1, typ))
	}
	return formattest.Msg{}.Str(1, "v").Sub(2, typ)
}

// large is a model whose weight is a gibibyte that exists nowhere: reading it
// would fail the test, and does not happen.
type large struct {
	t              *testing.T
	before, behind []byte
	hole           int64
	got            *int64
}

func (l large) ReadAt(p []byte, off int64) (int, error) {
	*l.got += int64(len(p))
	for i := range p {
		switch at := off + int64(i); {
		case at < int64(len(l.before)):
			p[i] = l.before[at]
		case at < int64(len(l.before))+l.hole:
			p[i] = 0xff
		case at < int64(len(l.before))+l.hole+int64(len(l.behind)):
			p[i] = l.behind[at-int64(len(l.before))-l.hole]
		default:
			return i, io.EOF
		}
	}
	return len(p), nil
}

func TestWeightsAreSkipped(t *testing.T) {
	t.Parallel()
	const hole = 1 << 30
	tensor := formattest.Msg{}.Num(1, hole/4).Num(2, 1).Str(8, "w")
	rest := formattest.GraphOf(formattest.Msg{}.Sub(1, formattest.Node("Relu")))
	prefix := func(field byte, n int) formattest.Msg { return lengthOf(field, n) }
	raw := prefix(9, hole)
	inner := prefix(5, len(tensor)+len(raw)+hole)
	outer := prefix(7, len(inner)+len(tensor)+len(raw)+hole+len(rest))
	before := slices.Concat(formattest.Msg{}.Num(1, 8), outer, inner, tensor, raw)
	behind := slices.Concat(rest, formattest.Msg{}.Sub(8, formattest.Opset("", 17)))
	var got int64
	src := large{t, before, behind, hole, &got}
	m, err := onnx.Read(src, int64(len(before)+len(behind))+hole, bound.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "initializer bytes", m.InitializerBytes, int64(hole))
	equal(t, "inputs", list(m.Inputs), "x float32[]")
	if got > 1<<18 {
		t.Errorf("%d bytes were read of a model with a few hundred", got)
	}
}

// lengthOf is the tag and length of a field whose payload is written elsewhere.
func lengthOf(field byte, n int) formattest.Msg {
	m := formattest.Msg{field<<3 | 2}
	for ; n >= 0x80; n >>= 7 {
		m = append(m, byte(n)|0x80)
	}
	return append(m, byte(n))
}

func list(values []onnx.Value) string {
	var parts []string
	for _, v := range values {
		parts = append(parts, v.Name+" "+v.String())
	}
	return strings.Join(parts, "; ")
}

func sum(counts func(func(int) bool)) int {
	total := 0
	for n := range counts {
		total += n
	}
	return total
}

// equal compares what was got with what was wanted; nil and empty are equal.
func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if g := reflect.ValueOf(got); g.Kind() == reflect.Slice && g.Len() == 0 && reflect.ValueOf(want).Len() == 0 {
		return
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func read(t *testing.T, data []byte) (*onnx.Model, error) {
	t.Helper()
	return onnx.Read(bytes.NewReader(data), int64(len(data)), bound.Limits{})
}
