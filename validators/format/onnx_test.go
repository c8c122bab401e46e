package format_test

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
			m, err := format.OpenONNX("testdata/"+tc.file, format.Limits{})
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
	m, err := read(t, testdata(t, "linear.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "metadata", m.Metadata, map[string]string{"purpose": "test"})
	equal(t, "producer version", m.ProducerVersion, "1")
	equal(t, "shape", m.Inputs[0].Shape, []format.Dim{{Param: "batch"}, {Known: true, Value: 2}})
	m, err = read(t, testdata(t, "external.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "external bytes", m.ExternalBytes, map[string]int64{"external.bin": 96})
	m, err = read(t, testdata(t, "functions.onnx"))
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
		m, err := read(t, testdata(t, file))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "producers of "+file, m.Producers, want)
	}
	output := func(name string) msg { return msg{}.str(1, name).sub(2, msg{}.sub(1, msg{}.num(1, 1))) }
	inner := msg{}.sub(1, msg{}.str(2, "y").str(4, "Neg")).sub(12, output("y"))
	graph := msg{}.sub(12, output("y")).sub(12, output("x")).
		sub(1, msg{}.str(4, "Split").str(2, "other").str(2, "y")).
		sub(1, msg{}.str(2, "z").str(4, "If").sub(5, msg{}.str(1, "then_branch").sub(6, inner)))
	m, err := read(t, modelOf(graph))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "producers", m.Producers, map[string]string{"y": "Split"})
}

func TestValueTypes(t *testing.T) {
	t.Parallel()
	float := msg{}.sub(1, msg{}.num(1, 1))
	tests := []struct {
		name string
		typ  msg
		want string
	}{
		{"unknown rank", float, "float32[...]"},
		{"scalar", msg{}.sub(1, msg{}.num(1, 7).sub(2, msg{})), "int64[]"},
		{"minus one", msg{}.sub(1, msg{}.num(1, 10).sub(2, msg{}.sub(1, msg{}.num(1, -1)).sub(1, msg{}.num(1, 0)))), "float16[?,0]"},
		{"map", msg{}.sub(5, msg{}.num(1, 7).sub(2, float)), "map(int64,float32)"},
		{"sequence of maps", msg{}.sub(4, msg{}.sub(1, msg{}.sub(5, msg{}.num(1, 8).sub(2, float)))), "sequence(map(string,float32))"},
		{"optional", msg{}.sub(9, msg{}.sub(1, float)), "optional(float32)"},
		{"sparse", msg{}.sub(8, msg{}.num(1, 11)), "sparse(float64)"},
		{"later type", msg{}.sub(1, msg{}.num(1, 99)), "dtype99[...]"},
		{"no type", msg{}, "undefined[...]"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m, err := read(t, modelOf(graphOf(msg{}.sub(11, msg{}.str(1, "v").sub(2, tc.typ)))))
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
		data := testdata(t, file)
		opsetLen := len(data) - bytes.LastIndexByte(data, 0x42)
		for n := range len(data) - opsetLen {
			_, err := read(t, data[:n])
			wantCode(t, err, registry.CodeInvalid)
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
	data := msg{}.num(1, 8).sub(7, make(msg, 1000))[:500]
	_, err := read(t, data)
	wantCode(t, err, registry.CodeInvalid)
	if want := "truncated at byte 500 of at least 1005: field 7 of ModelProto at byte 2"; !strings.Contains(err.Error(), want) {
		t.Errorf("%q does not say %q", err, want)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		data msg
		want string
	}{
		{"nothing", msg{}, "no graph"},
		{"no graph", msg{}.num(1, 8).sub(8, opset("", 17)), "no graph"},
		{"no opset", msg{}.num(1, 8).sub(7, graphOf()), "no operator set"},
		{"no version", msg{}.sub(7, graphOf()).sub(8, opset("", 17)), "IR version 0"},
		{"no outputs", modelOf(msg{}.sub(1, node("Relu"))), "no outputs"},
		{"two graphs", small().sub(7, graphOf()), "second graph"},
		{"opset zero", small().sub(8, opset("ai.onnx.ml", 0)), "versions start at 1"},
		{"opset twice", small().sub(8, opset("ai.onnx", 18)), "version 17 and as version 18"},
		{"wrong wire type", msg{}.str(1, "8"), "wire type"},
		{"group", msg{0x0b}, "wire type 3"},
		{"field zero", msg{0x00, 0x00}, "impossible number"},
		{"endless varint", msg(strings.Repeat("\xff", 20)), "more than 64 bits"},
		{"child larger than parent", modelOf(msg{0x0a, 0x7f, 0x0a}), "the message around it ends"},
		{"node without operator", modelOf(graphOf(msg{}.sub(1, msg{}.str(1, "x")))), "without an operator"},
		{"node of a wrong wire type", modelOf(graphOf(msg{}.num(1, 1))), "field 1 of GraphProto"},
		{"input without name", modelOf(graphOf(msg{}.sub(11, msg{}))), "without a name"},
		{"negative dimension", modelOf(graphOf(msg{}.sub(5, msg{}.num(1, -3).num(2, 1)))), "dimension -3"},
		{"too many elements", modelOf(graphOf(msg{}.sub(5, msg{}.num(1, 1<<40).num(1, 1<<40)))), "more elements"},
		{"no location", modelOf(graphOf(msg{}.sub(5, external("", "", "")))), "without a location"},
		{"two locations", modelOf(graphOf(msg{}.sub(5, append(external("a", "", ""), external("b", "", "")...)))), "two locations"},
		{"bad offset", modelOf(graphOf(msg{}.sub(5, external("a", "-1", "")))), `offset "-1"`},
		{"offset overflow", modelOf(graphOf(msg{}.sub(5, external("a", "9223372036854775807", "8")))), "beyond any file"},
		{"long name", modelOf(graphOf(msg{}.sub(1, node(strings.Repeat("a", 1<<17))))), "at most 65536"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := read(t, tc.data)
			wantCode(t, err, registry.CodeInvalid)
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%q does not say %q", err, tc.want)
			}
		})
	}
}

func TestMemoryAddress(t *testing.T) {
	t.Parallel()
	attack := external("*/_ORT_MEM_ADDR_/*", "4096", "65536")
	constant := node("Constant").sub(5, msg{}.str(1, "value").sub(5, attack))
	for name, graph := range map[string]msg{
		"initializer": graphOf(msg{}.sub(5, attack)),
		"sparse":      graphOf(msg{}.sub(15, msg{}.sub(2, attack))),
		"attribute":   graphOf(msg{}.sub(1, constant)),
		"subgraph":    graphOf(msg{}.sub(1, node("If").sub(5, msg{}.sub(6, msg{}.sub(1, constant))))),
	} {
		_, err := read(t, modelOf(graph))
		if registry.CodeOf(err) != registry.CodeUnsafe {
			t.Errorf("%s: %v, want unsafe", name, err)
		}
	}
	_, err := read(t, small().sub(25, msg{}.str(1, "F").sub(7, constant)))
	wantCode(t, err, registry.CodeUnsafe)
	_, err = read(t, small().sub(20, msg{}.sub(2, graphOf(msg{}.sub(1, constant)))))
	wantCode(t, err, registry.CodeUnsafe)
}

func TestLimits(t *testing.T) {
	t.Parallel()
	many := msg{}
	for i := range 100 {
		many = many.sub(1, node("Relu")).sub(5, msg{}.num(2, 1).str(8, fmt.Sprint("w", i)))
	}
	tests := []struct {
		name string
		data msg
		lim  format.Limits
		want string
	}{
		{"bytes", small(), format.Limits{MaxBytes: 10}, "at most 10"},
		{"depth", nested(4), format.Limits{MaxDepth: 3}, "nested more than 3"},
		{"default depth", nested(33), format.Limits{}, "nested more than 32"},
		{"nodes", modelOf(graphOf(many)), format.Limits{MaxNodes: 99}, "more than 99 nodes"},
		{"tensors", modelOf(graphOf(many)), format.Limits{MaxTensors: 99}, "more than 99 tensors"},
		{"fields", modelOf(graphOf(many)), format.Limits{MaxFields: 300}, "more protobuf fields"},
		{"memory", modelOf(graphOf(many)), format.Limits{MaxMemory: 1000}, "more bytes of names"},
		{"types", modelOf(graphOf(msg{}.sub(11, deepType(40)))), format.Limits{}, "types are nested"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := format.ReadONNX(bytes.NewReader(tc.data), int64(len(tc.data)), tc.lim)
			wantCode(t, err, registry.CodeInvalid)
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%q does not say %q", err, tc.want)
			}
		})
	}
	if _, err := read(t, nested(32)); err != nil {
		t.Errorf("32 levels: %v", err)
	}
	if _, err := read(t, modelOf(graphOf(many))); err != nil {
		t.Errorf("100 nodes: %v", err)
	}
}

func deepType(depth int) msg {
	typ := msg{}.sub(1, msg{}.num(1, 1))
	for range depth {
		typ = msg{}.sub(4, msg{}.sub(1, typ))
	}
	return msg{}.str(1, "v").sub(2, typ)
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
	tensor := msg{}.num(1, hole/4).num(2, 1).str(8, "w")
	rest := graphOf(msg{}.sub(1, node("Relu")))
	prefix := func(field byte, n int) msg { return msg{}.num(1, 0)[:0].length(field, n) }
	raw := prefix(9, hole)
	inner := prefix(5, len(tensor)+len(raw)+hole)
	outer := prefix(7, len(inner)+len(tensor)+len(raw)+hole+len(rest))
	before := slices.Concat(msg{}.num(1, 8), outer, inner, tensor, raw)
	behind := slices.Concat(rest, msg{}.sub(8, opset("", 17)))
	var got int64
	src := large{t, before, behind, hole, &got}
	m, err := format.ReadONNX(src, int64(len(before)+len(behind))+hole, format.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "initializer bytes", m.InitializerBytes, int64(hole))
	equal(t, "inputs", list(m.Inputs), "x float32[]")
	if got > 1<<18 {
		t.Errorf("%d bytes were read of a model with a few hundred", got)
	}
}

// length is the tag and length of a field whose payload is written elsewhere.
func (m msg) length(field byte, n int) msg {
	m = append(m, field<<3|2)
	for ; n >= 0x80; n >>= 7 {
		m = append(m, byte(n)|0x80)
	}
	return append(m, byte(n))
}

func list(values []format.Value) string {
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

func read(t *testing.T, data []byte) (*format.Model, error) {
	t.Helper()
	return format.ReadONNX(bytes.NewReader(data), int64(len(data)), format.Limits{})
}
