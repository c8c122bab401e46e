package format_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/format"
)

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

// External data has to be as long as what the tensors read of it.
func TestExternalDataAtItsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		offset, length string
		size           int
		ok             bool
	}{
		"all of it":                 {"", "", 8, true}, // two float32
		"a byte is missing":         {"", "", 7, false},
		"behind an offset":          {"4", "", 12, true},
		"behind an offset, cut":     {"4", "", 11, false},
		"the length":                {"0", "16", 16, true},
		"the length, cut":           {"0", "16", 15, false},
		"a length of its own, of 0": {"4", "0", 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "w.bin", make([]byte, c.size))
			path := write(t, dir, "model.onnx", modelOf(graphOf(initializer(external("w.bin", c.offset, c.length)))))
			err := format.Check(path, format.ONNX, format.Limits{})
			if c.ok && err != nil {
				t.Errorf("error %v, want none", err)
			}
			if !c.ok && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "is truncated")) {
				t.Errorf("error %v, want CodeInvalid that says it is truncated", err)
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

// File names have up to 255 bytes, and a model of the limit's size passes.
func TestCheckAtTheLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := write(t, dir, "engine.plan", []byte("ptrt\x00\x00\x00\x00"))
	if err := format.Check(path, format.TensorRT, format.Limits{MaxBytes: 8}); err != nil {
		t.Errorf("8 bytes of 8: %v", err)
	}
	if err := format.Check(path, format.TensorRT, format.Limits{MaxBytes: 7}); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("8 bytes of 7: error %v, want CodeInvalid", err)
	}
	for length, code := range map[int]registry.Code{255: registry.CodeInvalid, 256: registry.CodeUnsafe} { // missing, or no name
		m, err := read(t, modelOf(graphOf(initializer(external(strings.Repeat("w", length), "", "")))))
		if err != nil {
			t.Fatal(err)
		}
		if err := format.CheckExternalData(dir, m); !registry.HasCode(err, code) {
			t.Errorf("a name of %d bytes: error %v, want %s", length, err, code)
		}
	}
}

// blobOf is a blob that claims so many bytes of requirements.
func blobOf(requirements string, claims uint64) []byte {
	data := blob(requirements)
	binary.LittleEndian.PutUint64(data[12:], claims)
	return data
}

func TestBlobAtTheLimits(t *testing.T) {
	t.Parallel()
	const plain = "meta=1.0;ov=2026.4.1;isa=Intel AVX2"
	longest := plain + ";" + strings.Repeat("x", 4096-len(plain)-1)
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"the longest requirements": {blob(longest), ""},
		"a byte more":              {blob(longest + "x"), "at most 4096"},
		"up to the end":            {blob(plain)[:20+len(plain)], ""},
		"beyond the end":           {blob(plain)[:19+len(plain)], "less than the file"},
		"an absurd length":         {blobOf(plain, 1<<63), "at most 4096"},
		"no instructions":          {blob("meta=1.0;ov=2026.4.1"), "want a version (ov) and instructions (isa)"},
		"nothing":                  {blob(""), "want a version (ov) and instructions (isa)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := format.BlobTie(bytes.NewReader(c.data), int64(len(c.data)))
			if c.says == "" && err != nil {
				t.Errorf("error %v, want none", err)
			}
			if c.says != "" && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want CodeInvalid with %q", err, c.says)
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

// Beginnings that are just long enough, and one byte too short, for what recognises them.
func TestSniffBoundaries(t *testing.T) {
	t.Parallel()
	pe := func(at byte, rest string) string {
		return "MZ" + strings.Repeat("\x00", 58) + string([]byte{at, 0, 0, 0}) + rest
	}
	for name, c := range map[string]struct {
		data string
		want format.Kind
	}{
		"an ELF magic alone":               {"\x7fELF", format.NativeObject},
		"three of its bytes":               {"\x7fEL", format.Unknown},
		"a PE header behind a gap":         {pe(0x44, "\x00\x00\x00\x00PE\x00\x00"), format.NativeObject},
		"a PE header that is cut":          {pe(0x40, "PE\x00"), format.Unknown},
		"MZ in a text":                     {"MZ" + strings.Repeat("a", 70), format.Unknown},
		"a flatbuffer identifier alone":    {"\x1c\x00\x00\x00TFL3", format.TFLite},
		"a flatbuffer identifier, cut":     {"\x1c\x00\x00\x00TFL", format.Unknown},
		"the shortest safetensors":         {"\x02\x00\x00\x00\x00\x00\x00\x00{}", format.Safetensors},
		"a header too short for an object": {"\x01\x00\x00\x00\x00\x00\x00\x00{}", format.Unknown},
		"a header that is no object":       {"\x02\x00\x00\x00\x00\x00\x00\x00[]", format.Unknown},
		"HDF5 that is cut":                 {"\x89HDF\r\n\x1a", format.Unknown},
		"HDF5 behind 512 bytes":            {strings.Repeat("\x00", 512) + "\x89HDF\r\n\x1a\n", format.HDF5},
		"HDF5 behind 511 bytes":            {strings.Repeat("\x00", 511) + "\x89HDF\r\n\x1a\n", format.Unknown},
		"the header of a pickle alone":     {"\x80\x05", format.Pickle},
		"a protocol that there is not":     {"\x80\x06", format.Unknown},
		"numpy of version 2":               {"\x93NUMPY\x02\x00\x02\x00\x00\x00{}", format.Numpy},
		"numpy of version 3":               {"\x93NUMPY\x03\x00\x02\x00\x00\x00{}", format.Numpy},
		"numpy of version 4":               {"\x93NUMPY\x04\x00\x02\x00\x00\x00{}", format.NumpyObject},
		"numpy whose header is cut":        {"\x93NUMPY\x01\x00\x03\x00{}", format.NumpyObject},
		"numpy without a header":           {"\x93NUMPY\x01\x00", format.NumpyObject},
		"numpy that says object":           {"\x93NUMPY\x01\x00\x08\x00{'obj':1}", format.NumpyObject},
		"numpy with an escape":             {"\x93NUMPY\x01\x00\x06\x00{'\\x':", format.NumpyObject},
		"a folder in an archive":           {string(zipped(t, "a/", "", "a/b", "text")), format.Zip},
		"a flatbuffer that begins as zlib": {"\x78\x9c\xff\xffTFL3", format.TFLite},
		"an empty archive behind bytes":    {"some text " + string(zipped(t)), format.Unknown},
		"an archive behind bytes":          {"some text " + string(zipped(t, "a", "text")), format.Zip},
		"an archive that is encrypted":     {encrypted(t), format.Unknown},
		"a call after an import":           {"cos\nsystem\n)R text", format.Pickle},
		"a call without an import":         {"N)R text", format.Unknown},
		"a state without an import":        {"N}b text", format.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := sniff([]byte(c.data)); got != c.want {
				t.Errorf("Sniff = %v, want %v", got, c.want)
			}
		})
	}
}

// encrypted is an archive whose only entry says that it is encrypted.
func encrypted(t *testing.T) string {
	t.Helper()
	data := zipped(t, "a", "text")
	data[6] |= 1                                         // local header
	data[bytes.Index(data, []byte("PK\x01\x02"))+8] |= 1 // directory
	return string(data)
}

// A SavedModel has one version, and graphs of it.
func TestSniffSavedModel(t *testing.T) {
	t.Parallel()
	graph := msg{}.sub(2, msg{}.sub(2, msg{}.sub(1, msg{}.str(2, "Add"))))
	for name, c := range map[string]struct {
		data msg
		want format.Kind
	}{
		"version and graph":   {append(msg{}.num(1, 1), graph...), format.SavedModel},
		"no version":          {graph, format.Unknown},
		"another version":     {append(msg{}.num(1, 2), graph...), format.Unknown},
		"no graph":            {msg{}.num(1, 1).sub(2, msg{}.str(1, "meta")), format.Unknown},
		"something else too":  {append(append(msg{}.num(1, 1), graph...), msg{}.num(3, 1)...), format.Unknown},
		"a graph that is cut": {append(msg{}.num(1, 1), graph...)[:10], format.Unknown},
	} {
		if got := sniff(c.data); got != c.want {
			t.Errorf("%s: Sniff = %v, want %v", name, got, c.want)
		}
	}
}

// The files of a SavedModel are counted, and so are their bytes.
func TestSavedModelAtTheLimits(t *testing.T) {
	t.Parallel()
	graph := saved(msg{}.str(2, "Add"))
	if _, err := format.CheckSavedModel(folderOf(t, graph), format.Limits{MaxBytes: int64(len(graph)) + 3}); err != nil {
		t.Errorf("three bytes beside the graph, of three: %v", err)
	}
	for files, ok := range map[int]bool{1023: true, 1024: false} { // beside saved_model.pb
		dir := t.TempDir()
		write(t, dir, "saved_model.pb", graph)
		for i := range files {
			write(t, filepath.Join(dir, "assets"), fmt.Sprint(i), nil)
		}
		names, err := format.CheckSavedModel(dir, format.Limits{})
		if ok && (err != nil || len(names) != files+1) {
			t.Errorf("%d files: %d names, error %v", files, len(names), err)
		}
		if !ok && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "more than 1024 files")) {
			t.Errorf("%d files: error %v, want CodeInvalid", files, err)
		}
	}
}

// A runtime is met by what lets no older one in.
func TestNeedMet(t *testing.T) {
	t.Parallel()
	need := format.Need{Version: "1.18"}
	for name, c := range map[string]struct {
		need format.Need
		by   artifact.Constraint
		want bool
	}{
		"the very version":      {need, artifact.Constraint{Exact: "1.18"}, true},
		"an earlier one":        {need, artifact.Constraint{Exact: "1.17.9"}, false},
		"from it on":            {need, artifact.Constraint{Min: "1.18.0"}, true},
		"from an earlier one":   {need, artifact.Constraint{Min: "1.17"}, false},
		"below a later one":     {need, artifact.Constraint{Below: "2"}, false},
		"nothing needed":        {format.Need{}, artifact.Constraint{Below: "2"}, true},
		"nothing is let in yet": {need, artifact.Constraint{}, false},
	} {
		if got := c.need.Met(c.by); got != c.want {
			t.Errorf("%s: met %v, want %v", name, got, c.want)
		}
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
