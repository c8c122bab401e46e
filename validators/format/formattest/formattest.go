// Package formattest builds small model files for tests.
package formattest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/registry"
)

// Msg builds a protobuf message field by field.
type Msg []byte

// Num appends a number.
func (m Msg) Num(field protowire.Number, v int64) Msg {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), uint64(v))
}

// Str appends a text.
func (m Msg) Str(field protowire.Number, s string) Msg { return m.Sub(field, Msg(s)) }

// Sub appends a message.
func (m Msg) Sub(field protowire.Number, inner Msg) Msg {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), inner)
}

// Opset is an import of an operator set.
func Opset(domain string, version int64) Msg { return Msg{}.Str(1, domain).Num(2, version) }

// Node is a node of an operator with one input and one output.
func Node(op string) Msg { return Msg{}.Str(1, "x").Str(2, "y").Str(4, op) }

// Value is an input or output of the graph.
func Value(name string) Msg {
	return Msg{}.Str(1, name).Sub(2, Msg{}.Sub(1, Msg{}.Num(1, 1).Sub(2, Msg{})))
}

// GraphOf is a graph of these parts.
func GraphOf(parts ...Msg) Msg {
	g := Msg{}
	for _, p := range parts {
		g = append(g, p...)
	}
	return g.Sub(11, Value("x")).Sub(12, Value("y"))
}

// ModelOf is a model with this graph.
func ModelOf(graph Msg) Msg {
	return Msg{}.Num(1, 8).Str(2, "test").Sub(7, graph).Sub(8, Opset("", 17))
}

// Small is a model of one Relu.
func Small() Msg { return ModelOf(GraphOf(Msg{}.Sub(1, Node("Relu")))) }

// External is a tensor that is stored in another file.
func External(location, offset, length string) Msg {
	t := Msg{}.Num(1, 2).Num(2, 1).Str(8, "w").Num(14, 1)
	for _, kv := range [][2]string{{"location", location}, {"offset", offset}, {"length", length}} {
		if kv[1] != "" {
			t = t.Sub(13, Msg{}.Str(1, kv[0]).Str(2, kv[1]))
		}
	}
	return t
}

// Testdata reads a file in the folder testdata of a package.
func Testdata(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Write writes a file below a folder, and returns its path.
func Write(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// WantCode fails the test unless the error has this code.
func WantCode(t *testing.T, err error, code registry.Code) {
	t.Helper()
	if err == nil || registry.CodeOf(err) != code {
		t.Fatalf("error %v has code %q, want %q", err, registry.CodeOf(err), code)
	}
}

// Zipped makes an archive of entries, name and content in turn.
func Zipped(t testing.TB, entries ...string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for i := 0; i < len(entries); i += 2 {
		f, err := w.Create(entries[i])
		if err == nil {
			_, err = io.WriteString(f, entries[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// Saved is a SavedModel of one node in the graph, and one in a function.
func Saved(node Msg) Msg {
	graph := Msg{}.Sub(1, Msg{}.Str(1, "x").Str(2, "Placeholder")).Sub(2, Msg{}.Sub(1, Msg{}.Str(1, "signature").Sub(3, node)))
	return Msg{}.Num(1, 1).Sub(2, Msg{}.Sub(1, Msg{}.Str(4, "serve")).Sub(2, graph))
}

// JAXExport is a flatbuffer whose root table has one vector of bytes, in that field, which is the last.
func JAXExport(field int, program string) string {
	le := binary.LittleEndian
	slots := 4 + 2*(field+1)
	out := le.AppendUint32(nil, uint32(4+slots)) // where the table is, behind its list of fields
	list := make([]byte, slots)
	le.PutUint16(list, uint16(slots))
	le.PutUint16(list[2:], 8)
	le.PutUint16(list[slots-2:], 4)
	out = append(out, list...)
	out = le.AppendUint32(out, uint32(slots)) // back from the table to the list
	out = le.AppendUint32(out, 4)             // from the field to the vector
	out = le.AppendUint32(out, uint32(len(program)))
	return string(append(out, program...))
}

// Initializer is a tensor of the main graph.
func Initializer(fields Msg) Msg { return Msg{}.Sub(5, fields) }

// Nodes is so many of one operator.
func Nodes(n int) Msg {
	g := Msg{}
	for range n {
		g = g.Sub(1, Node("Relu"))
	}
	return g
}

// Nested is a model with If inside If.
func Nested(depth int) Msg {
	g := GraphOf(Msg{}.Sub(1, Node("Relu")))
	for range depth {
		g = GraphOf(Msg{}.Sub(1, Node("If").Sub(5, Msg{}.Sub(6, g))))
	}
	return ModelOf(g)
}
