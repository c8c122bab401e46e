package format_test

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

// msg builds a protobuf message field by field.
type msg []byte

func (m msg) num(field protowire.Number, v int64) msg {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), uint64(v))
}

func (m msg) str(field protowire.Number, s string) msg { return m.sub(field, msg(s)) }

func (m msg) sub(field protowire.Number, inner msg) msg {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), inner)
}

// The messages of the smallest models.
func opset(domain string, version int64) msg { return msg{}.str(1, domain).num(2, version) }

func node(op string) msg { return msg{}.str(1, "x").str(2, "y").str(4, op) }

func value(name string) msg {
	return msg{}.str(1, name).sub(2, msg{}.sub(1, msg{}.num(1, 1).sub(2, msg{})))
}

func graphOf(parts ...msg) msg {
	g := msg{}
	for _, p := range parts {
		g = append(g, p...)
	}
	return g.sub(11, value("x")).sub(12, value("y"))
}

func modelOf(graph msg) msg {
	return msg{}.num(1, 8).str(2, "test").sub(7, graph).sub(8, opset("", 17))
}

// small is a model of one Relu.
func small() msg { return modelOf(graphOf(msg{}.sub(1, node("Relu")))) }

func external(location, offset, length string) msg {
	t := msg{}.num(1, 2).num(2, 1).str(8, "w").num(14, 1)
	for _, kv := range [][2]string{{"location", location}, {"offset", offset}, {"length", length}} {
		if kv[1] != "" {
			t = t.sub(13, msg{}.str(1, kv[0]).str(2, kv[1]))
		}
	}
	return t
}

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, dir, name string, data []byte) string {
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

func wantCode(t *testing.T, err error, code registry.Code) {
	t.Helper()
	if err == nil || registry.CodeOf(err) != code {
		t.Fatalf("error %v has code %q, want %q", err, registry.CodeOf(err), code)
	}
}

// zipped makes an archive of entries, name and content in turn.
func zipped(t testing.TB, entries ...string) []byte {
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

// saved is a SavedModel of one node in the graph, and one in a function.
func saved(node msg) msg {
	graph := msg{}.sub(1, msg{}.str(1, "x").str(2, "Placeholder")).sub(2, msg{}.sub(1, msg{}.str(1, "signature").sub(3, node)))
	return msg{}.num(1, 1).sub(2, msg{}.sub(1, msg{}.str(4, "serve")).sub(2, graph))
}

// jaxExport is a flatbuffer whose root table has one vector of bytes, in that field, which is the last.
func jaxExport(field int, program string) string {
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

// initializer is a tensor of the main graph.
func initializer(fields msg) msg { return msg{}.sub(5, fields) }

// nodes is so many of one operator.
func nodes(n int) msg {
	g := msg{}
	for range n {
		g = g.sub(1, node("Relu"))
	}
	return g
}

// nested is a model with If inside If.
func nested(depth int) msg {
	g := graphOf(msg{}.sub(1, node("Relu")))
	for range depth {
		g = graphOf(msg{}.sub(1, node("If").sub(5, msg{}.sub(6, g))))
	}
	return modelOf(g)
}
