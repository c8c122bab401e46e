package onnx_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/formattest"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// What needs all that a limit allows is read, and what needs one more is not.
func TestReadAtTheLimits(t *testing.T) {
	t.Parallel()
	many := func(n int) formattest.Msg {
		g := formattest.Msg{}
		for i := range n {
			g = append(g, formattest.Initializer(formattest.Msg{}.Num(2, 1).Str(8, fmt.Sprint("w", i)))...)
		}
		return g
	}
	dims := func(n int) formattest.Msg {
		m := formattest.Msg{}.Num(2, 1)
		for range n {
			m = m.Num(1, 1)
		}
		return formattest.Initializer(m)
	}
	packed := formattest.Msg{}.Num(2, 1).Sub(1, formattest.Msg(bytes.Repeat([]byte{1}, 1025)))
	axes := func(n int) formattest.Msg {
		shape := formattest.Msg{}
		for range n {
			shape = shape.Sub(1, formattest.Msg{}.Num(1, 1))
		}
		return formattest.Msg{}.Sub(11, formattest.Msg{}.Str(1, "v").Sub(2, formattest.Msg{}.Sub(1, formattest.Msg{}.Num(1, 1).Sub(2, shape))))
	}
	size := int64(len(formattest.Small()))
	for name, c := range map[string]struct {
		data formattest.Msg
		lim  bound.Limits
		says string // empty: it is read
	}{
		"all bytes":            {formattest.Small(), bound.Limits{MaxBytes: size}, ""},
		"a byte too many":      {formattest.Small(), bound.Limits{MaxBytes: size - 1}, "may have at most"},
		"all nodes":            {formattest.ModelOf(formattest.GraphOf(formattest.Nodes(3))), bound.Limits{MaxNodes: 3}, ""},
		"a node too many":      {formattest.ModelOf(formattest.GraphOf(formattest.Nodes(4))), bound.Limits{MaxNodes: 3}, "more than 3 nodes"},
		"all tensors":          {formattest.ModelOf(formattest.GraphOf(many(3))), bound.Limits{MaxTensors: 3}, ""},
		"a tensor too many":    {formattest.ModelOf(formattest.GraphOf(many(4))), bound.Limits{MaxTensors: 3}, "more than 3 tensors"},
		"all levels":           {formattest.Nested(3), bound.Limits{MaxDepth: 3}, ""},
		"a level too many":     {formattest.Nested(4), bound.Limits{MaxDepth: 3}, "nested more than 3"},
		"all levels of a type": {formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(11, deepType(16)))), bound.Limits{}, ""},
		"one more":             {formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(11, deepType(17)))), bound.Limits{}, "types are nested more than 16"},
		"longest name":         {formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(1, formattest.Node(strings.Repeat("a", 64<<10))))), bound.Limits{}, ""},
		"name too long":        {formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(1, formattest.Node(strings.Repeat("a", 64<<10+1))))), bound.Limits{}, "a name of 65537 bytes"},
		"highest rank":         {formattest.ModelOf(formattest.GraphOf(dims(1024))), bound.Limits{}, ""},
		"rank too high":        {formattest.ModelOf(formattest.GraphOf(dims(1025))), bound.Limits{}, "more than 1024 dimensions"},
		"packed rank too high": {formattest.ModelOf(formattest.GraphOf(formattest.Initializer(packed))), bound.Limits{}, "more than 1024 dimensions"},
		"most axes":            {formattest.ModelOf(formattest.GraphOf(axes(1024))), bound.Limits{}, ""},
		"an axis too many":     {formattest.ModelOf(formattest.GraphOf(axes(1025))), bound.Limits{}, "a value of more than 1024 dimensions"},
		"a dimension of 0":     {formattest.ModelOf(formattest.GraphOf(formattest.Initializer(formattest.Msg{}.Num(1, 0).Num(2, 1)))), bound.Limits{}, ""},
		"a dimension below 0":  {formattest.ModelOf(formattest.GraphOf(formattest.Initializer(formattest.Msg{}.Num(1, -1).Num(2, 1)))), bound.Limits{}, "the dimension -1"},
		"most elements":        {formattest.ModelOf(formattest.GraphOf(formattest.Initializer(formattest.Msg{}.Num(1, (1<<63-1)/128).Num(2, 1)))), bound.Limits{}, ""},
		"an element too many":  {formattest.ModelOf(formattest.GraphOf(formattest.Initializer(formattest.Msg{}.Num(1, (1<<63-1)/128+1).Num(2, 1)))), bound.Limits{}, "more elements than there can be"},
		"dimensions of a float": {formattest.ModelOf(formattest.GraphOf(formattest.Initializer(append(formattest.Msg{},
			protowire.AppendFixed32(protowire.AppendTag(nil, 1, protowire.Fixed32Type), 1)...)))), bound.Limits{}, "dimensions of wire type 5"},
		"first operator set":                 {formattest.Small().Sub(8, formattest.Opset("mine", 1)), bound.Limits{}, ""},
		"operator set twice":                 {formattest.Small().Sub(8, formattest.Opset("ai.onnx", 17)), bound.Limits{}, ""},
		"first IR version":                   {formattest.Msg{}.Num(1, 1).Sub(7, formattest.GraphOf()).Sub(8, formattest.Opset("", 17)), bound.Limits{}, ""},
		"offset at the start":                {formattest.ModelOf(formattest.GraphOf(formattest.Initializer(formattest.External("a", "0", "0")))), bound.Limits{}, ""},
		"length below 0":                     {formattest.ModelOf(formattest.GraphOf(formattest.Initializer(formattest.External("a", "0", "-2")))), bound.Limits{}, `length "-2"`},
		"length that is no number":           {formattest.ModelOf(formattest.GraphOf(formattest.Initializer(formattest.External("a", "0", "many")))), bound.Limits{}, `length "many"`},
		"the same location twice":            {formattest.ModelOf(formattest.GraphOf(formattest.Initializer(append(formattest.External("a", "", ""), formattest.External("a", "", "")...)))), bound.Limits{}, ""},
		"too long an entry of external data": {formattest.ModelOf(formattest.GraphOf(formattest.Initializer(formattest.External(strings.Repeat("a", 64<<10), "", "")))), bound.Limits{}, "at most 65536 are allowed"},
		"longest entry of external data":     {formattest.ModelOf(formattest.GraphOf(formattest.Initializer(formattest.External(strings.Repeat("a", 64<<10-14), "", "")))), bound.Limits{}, ""},
		"a later field of a graph":           {formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Num(17, 1))), bound.Limits{}, ""},
		"the last field of a graph":          {formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Num(16, 1))), bound.Limits{}, "field 16 of GraphProto has wire type 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := onnx.Read(bytes.NewReader(c.data), int64(len(c.data)), c.lim)
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
		tensor formattest.Msg
		want   int64
	}{
		"float32":                 {formattest.Msg{}.Num(1, 3).Num(2, 1), 12},
		"a scalar":                {formattest.Msg{}.Num(2, 11), 8},
		"an odd number of 4 bits": {formattest.Msg{}.Num(1, 3).Num(2, 22), 2},
		"an even number":          {formattest.Msg{}.Num(1, 4).Num(2, 22), 2},
		"packed dimensions":       {formattest.Msg{}.Sub(1, formattest.Msg{2, 3}).Num(2, 3), 6},
		"none":                    {formattest.Msg{}.Num(1, 0).Num(2, 1), 0},
		"strings":                 {formattest.Msg{}.Num(1, 2).Num(2, 8).Str(6, "abc").Str(6, "de"), 5},
		"a type of later":         {formattest.Msg{}.Num(1, 3).Num(2, 99), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := read(t, formattest.ModelOf(formattest.GraphOf(formattest.Initializer(c.tensor))))
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
	float := formattest.Msg{}.Sub(1, formattest.Msg{}.Num(1, 1))
	for name, c := range map[string]struct {
		typ  formattest.Msg
		want string
	}{
		"a later field of a sequence":   {formattest.Msg{}.Sub(4, formattest.Msg{}.Sub(1, float).Sub(3, float)), "sequence(float32)"},
		"a number as value of a map":    {formattest.Msg{}.Sub(5, formattest.Msg{}.Num(1, 7).Num(2, 1)), "map(int64,undefined)"},
		"a later field of a type":       {formattest.Msg{}.Sub(1, formattest.Msg{}.Num(1, 1)).Sub(12, float), "float32[...]"},
		"a number as type":              {formattest.Msg{}.Num(1, 1), "undefined[...]"},
		"a text as element type":        {formattest.Msg{}.Sub(1, formattest.Msg{}.Str(1, "x")), "undefined[...]"},
		"a number as shape":             {formattest.Msg{}.Sub(1, formattest.Msg{}.Num(1, 1).Num(2, 1)), "float32[...]"},
		"an opaque type":                {formattest.Msg{}.Sub(7, formattest.Msg{}), "opaque()"},
		"a symbol for an axis":          {formattest.Msg{}.Sub(1, formattest.Msg{}.Num(1, 1).Sub(2, formattest.Msg{}.Sub(1, formattest.Msg{}.Str(2, "batch")))), "float32[batch]"},
		"a later field of a dimension":  {formattest.Msg{}.Sub(1, formattest.Msg{}.Num(1, 1).Sub(2, formattest.Msg{}.Sub(1, formattest.Msg{}.Num(1, 3).Num(3, 9)))), "float32[3]"},
		"a number in place of its axis": {formattest.Msg{}.Sub(1, formattest.Msg{}.Num(1, 1).Sub(2, formattest.Msg{}.Num(1, 3))), "float32[]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := read(t, formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(11, formattest.Msg{}.Str(1, "v").Sub(2, c.typ)))))
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
	m, err := read(t, formattest.Small().Sub(14, formattest.Msg{}.Str(1, "k").Str(2, "v").Str(3, "later")))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "metadata", m.Metadata, map[string]string{"k": "v"})
}
