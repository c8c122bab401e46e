package format_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
)

// What needs all that a limit allows is read, and what needs one more is not.
func TestReadONNXAtTheLimits(t *testing.T) {
	t.Parallel()
	many := func(n int) msg {
		g := msg{}
		for i := range n {
			g = append(g, initializer(msg{}.num(2, 1).str(8, fmt.Sprint("w", i)))...)
		}
		return g
	}
	dims := func(n int) msg {
		m := msg{}.num(2, 1)
		for range n {
			m = m.num(1, 1)
		}
		return initializer(m)
	}
	packed := msg{}.num(2, 1).sub(1, msg(bytes.Repeat([]byte{1}, 1025)))
	axes := func(n int) msg {
		shape := msg{}
		for range n {
			shape = shape.sub(1, msg{}.num(1, 1))
		}
		return msg{}.sub(11, msg{}.str(1, "v").sub(2, msg{}.sub(1, msg{}.num(1, 1).sub(2, shape))))
	}
	size := int64(len(small()))
	for name, c := range map[string]struct {
		data msg
		lim  format.Limits
		says string // empty: it is read
	}{
		"all bytes":            {small(), format.Limits{MaxBytes: size}, ""},
		"a byte too many":      {small(), format.Limits{MaxBytes: size - 1}, "may have at most"},
		"all nodes":            {modelOf(graphOf(nodes(3))), format.Limits{MaxNodes: 3}, ""},
		"a node too many":      {modelOf(graphOf(nodes(4))), format.Limits{MaxNodes: 3}, "more than 3 nodes"},
		"all tensors":          {modelOf(graphOf(many(3))), format.Limits{MaxTensors: 3}, ""},
		"a tensor too many":    {modelOf(graphOf(many(4))), format.Limits{MaxTensors: 3}, "more than 3 tensors"},
		"all levels":           {nested(3), format.Limits{MaxDepth: 3}, ""},
		"a level too many":     {nested(4), format.Limits{MaxDepth: 3}, "nested more than 3"},
		"all levels of a type": {modelOf(graphOf(msg{}.sub(11, deepType(16)))), format.Limits{}, ""},
		"one more":             {modelOf(graphOf(msg{}.sub(11, deepType(17)))), format.Limits{}, "types are nested more than 16"},
		"longest name":         {modelOf(graphOf(msg{}.sub(1, node(strings.Repeat("a", 64<<10))))), format.Limits{}, ""},
		"name too long":        {modelOf(graphOf(msg{}.sub(1, node(strings.Repeat("a", 64<<10+1))))), format.Limits{}, "a name of 65537 bytes"},
		"highest rank":         {modelOf(graphOf(dims(1024))), format.Limits{}, ""},
		"rank too high":        {modelOf(graphOf(dims(1025))), format.Limits{}, "more than 1024 dimensions"},
		"packed rank too high": {modelOf(graphOf(initializer(packed))), format.Limits{}, "more than 1024 dimensions"},
		"most axes":            {modelOf(graphOf(axes(1024))), format.Limits{}, ""},
		"an axis too many":     {modelOf(graphOf(axes(1025))), format.Limits{}, "a value of more than 1024 dimensions"},
		"a dimension of 0":     {modelOf(graphOf(initializer(msg{}.num(1, 0).num(2, 1)))), format.Limits{}, ""},
		"a dimension below 0":  {modelOf(graphOf(initializer(msg{}.num(1, -1).num(2, 1)))), format.Limits{}, "the dimension -1"},
		"most elements":        {modelOf(graphOf(initializer(msg{}.num(1, (1<<63-1)/128).num(2, 1)))), format.Limits{}, ""},
		"an element too many":  {modelOf(graphOf(initializer(msg{}.num(1, (1<<63-1)/128+1).num(2, 1)))), format.Limits{}, "more elements than there can be"},
		"dimensions of a float": {modelOf(graphOf(initializer(append(msg{},
			protowire.AppendFixed32(protowire.AppendTag(nil, 1, protowire.Fixed32Type), 1)...)))), format.Limits{}, "dimensions of wire type 5"},
		"first operator set":                 {small().sub(8, opset("mine", 1)), format.Limits{}, ""},
		"operator set twice":                 {small().sub(8, opset("ai.onnx", 17)), format.Limits{}, ""},
		"first IR version":                   {msg{}.num(1, 1).sub(7, graphOf()).sub(8, opset("", 17)), format.Limits{}, ""},
		"offset at the start":                {modelOf(graphOf(initializer(external("a", "0", "0")))), format.Limits{}, ""},
		"length below 0":                     {modelOf(graphOf(initializer(external("a", "0", "-2")))), format.Limits{}, `length "-2"`},
		"length that is no number":           {modelOf(graphOf(initializer(external("a", "0", "many")))), format.Limits{}, `length "many"`},
		"the same location twice":            {modelOf(graphOf(initializer(append(external("a", "", ""), external("a", "", "")...)))), format.Limits{}, ""},
		"too long an entry of external data": {modelOf(graphOf(initializer(external(strings.Repeat("a", 64<<10), "", "")))), format.Limits{}, "at most 65536 are allowed"},
		"longest entry of external data":     {modelOf(graphOf(initializer(external(strings.Repeat("a", 64<<10-14), "", "")))), format.Limits{}, ""},
		"a later field of a graph":           {modelOf(graphOf(msg{}.num(17, 1))), format.Limits{}, ""},
		"the last field of a graph":          {modelOf(graphOf(msg{}.num(16, 1))), format.Limits{}, "field 16 of GraphProto has wire type 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := format.ReadONNX(bytes.NewReader(c.data), int64(len(c.data)), c.lim)
			if c.says == "" && err != nil {
				t.Errorf("error %v, want none", err)
			}
			if c.says != "" && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want CodeInvalid with %q", err, c.says)
			}
		})
	}
}

// The bytes of initializers are those of dense tensors, with four bits rounded up.
func TestInitializerBytes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tensor msg
		want   int64
	}{
		"float32":                 {msg{}.num(1, 3).num(2, 1), 12},
		"a scalar":                {msg{}.num(2, 11), 8},
		"an odd number of 4 bits": {msg{}.num(1, 3).num(2, 22), 2},
		"an even number":          {msg{}.num(1, 4).num(2, 22), 2},
		"packed dimensions":       {msg{}.sub(1, msg{2, 3}).num(2, 3), 6},
		"none":                    {msg{}.num(1, 0).num(2, 1), 0},
		"strings":                 {msg{}.num(1, 2).num(2, 8).str(6, "abc").str(6, "de"), 5},
		"a type of later":         {msg{}.num(1, 3).num(2, 99), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := read(t, modelOf(graphOf(initializer(c.tensor))))
			if err != nil {
				t.Fatal(err)
			}
			if m.InitializerBytes != c.want {
				t.Errorf("%d bytes, want %d", m.InitializerBytes, c.want)
			}
		})
	}
}

// Wrong kinds of protobuf fields are not read as what their number says.
func TestValueFieldsOfOtherKinds(t *testing.T) {
	t.Parallel()
	float := msg{}.sub(1, msg{}.num(1, 1))
	for name, c := range map[string]struct {
		typ  msg
		want string
	}{
		"a later field of a sequence":   {msg{}.sub(4, msg{}.sub(1, float).sub(3, float)), "sequence(float32)"},
		"a number as value of a map":    {msg{}.sub(5, msg{}.num(1, 7).num(2, 1)), "map(int64,undefined)"},
		"a later field of a type":       {msg{}.sub(1, msg{}.num(1, 1)).sub(12, float), "float32[...]"},
		"a number as type":              {msg{}.num(1, 1), "undefined[...]"},
		"a text as element type":        {msg{}.sub(1, msg{}.str(1, "x")), "undefined[...]"},
		"a number as shape":             {msg{}.sub(1, msg{}.num(1, 1).num(2, 1)), "float32[...]"},
		"an opaque type":                {msg{}.sub(7, msg{}), "opaque()"},
		"a symbol for an axis":          {msg{}.sub(1, msg{}.num(1, 1).sub(2, msg{}.sub(1, msg{}.str(2, "batch")))), "float32[batch]"},
		"a later field of a dimension":  {msg{}.sub(1, msg{}.num(1, 1).sub(2, msg{}.sub(1, msg{}.num(1, 3).num(3, 9)))), "float32[3]"},
		"a number in place of its axis": {msg{}.sub(1, msg{}.num(1, 1).sub(2, msg{}.num(1, 3))), "float32[]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := read(t, modelOf(graphOf(msg{}.sub(11, msg{}.str(1, "v").sub(2, c.typ)))))
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "type", m.Inputs[0].String(), c.want)
		})
	}
}

// Later fields of an entry of metadata are neither its key nor its value.
func TestMetadataOfLaterVersions(t *testing.T) {
	t.Parallel()
	m, err := read(t, small().sub(14, msg{}.str(1, "k").str(2, "v").str(3, "later")))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "metadata", m.Metadata, map[string]string{"k": "v"})
}
