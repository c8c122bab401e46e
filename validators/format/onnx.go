package format

import (
	"io"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/registry"
)

// ReadONNX reads the metadata of the ONNX model in the size bytes of r. It skips weights, and
// its memory does not depend on the size.
//
// A file that is not a complete, well-formed model gives [registry.CodeInvalid] and the
// position: a truncated file, an invalid message, a model without graph, operator sets, IR
// version or outputs, or one beyond lim. A model that makes a runtime read from a memory
// address gives [registry.CodeUnsafe]. An error of r itself is passed on without a code.
func ReadONNX(r io.ReaderAt, size int64, lim Limits) (*Model, error) {
	rd, err := readONNX(r, size, lim)
	if err != nil {
		return nil, err
	}
	return rd.m, rd.producers()
}

// readONNX reads all but what needs a second look.
func readONNX(r io.ReaderAt, size int64, lim Limits) (*reader, error) {
	lim = lim.withDefaults()
	if size > lim.MaxBytes {
		return nil, registry.Errorf(registry.CodeInvalid,
			"%d bytes; an ONNX file may have at most %d: save its tensors as external data", size, lim.MaxBytes)
	}
	m := &Model{Opsets: map[string]int64{}, Ops: map[string]int{},
		ExternalBytes: map[string]int64{}, Metadata: map[string]string{}, Tensors: map[string]int{},
		Producers: map[string]string{}, ProducerNames: map[string]string{}}
	rd := &reader{
		scanner: newScanner(r, size, lim),
		lim:     lim, m: m, initializers: map[string]bool{}, functions: map[[2]string]bool{}, calls: map[[2]string]bool{},
		flow: newFlow(lim),
	}
	if err := rd.model(); err != nil {
		return nil, err
	}
	if err := rd.finish(); err != nil {
		return nil, err
	}
	return rd, nil
}

// reader builds a Model from the messages of a file.
type reader struct {
	*scanner
	lim          Limits
	m            *Model
	graphs       int
	main         span // the graph
	tensors      int
	initializers map[string]bool    // names in the main graph
	functions    map[[2]string]bool // domain and name of functions that the model defines
	flow         *flow
	calls        map[[2]string]bool // domain and operator of nodes outside the standard domains
}

// wireTypes are the wire types of ModelProto's fields; unknown fields are skipped.
var wireTypes = map[protowire.Number]protowire.Type{
	1: protowire.VarintType, 2: protowire.BytesType, 3: protowire.BytesType, 4: protowire.BytesType,
	5: protowire.VarintType, 6: protowire.BytesType, 7: protowire.BytesType, 8: protowire.BytesType,
	14: protowire.BytesType, 20: protowire.BytesType, 25: protowire.BytesType, 26: protowire.BytesType,
}

// model reads ModelProto.
func (rd *reader) model() error {
	return rd.each(span{0, rd.size}, "ModelProto", func(f field) (err error) {
		if want, known := wireTypes[f.num]; known && want != f.typ {
			return invalidAt(f.at,
				"not an ONNX model: field %d of ModelProto has wire type %d instead of %d", f.num, f.typ, want)
		}
		switch f.num {
		case 1:
			rd.m.IRVersion = int64(f.val)
		case 2:
			rd.m.Producer, err = rd.text(f)
		case 3:
			rd.m.ProducerVersion, err = rd.text(f)
		case 7:
			if rd.graphs++; rd.graphs > 1 {
				return invalidAt(f.at, "a second graph; a model has one")
			}
			rd.main = f.span
			err = rd.graph(f.span, 0, true)
		case 8:
			err = rd.opset(f)
		case 14:
			err = rd.metadata(f)
		case 20:
			err = rd.training(f.span)
		case 25:
			err = rd.function(f)
		}
		return err
	})
}

// opset reads OperatorSetIdProto.
func (rd *reader) opset(f field) error {
	var domain string
	var version int64
	err := rd.each(f.span, "OperatorSetIdProto", func(g field) (err error) {
		switch {
		case g.num == 1 && g.typ == protowire.BytesType:
			domain, err = rd.text(g)
		case g.num == 2 && g.typ == protowire.VarintType:
			version = int64(g.val)
		}
		return err
	})
	if err != nil {
		return err
	}
	domain = canonicalDomain(domain)
	if version < 1 {
		return invalidAt(f.at, "operator set %q has version %d; versions start at 1", domain, version)
	}
	if old, ok := rd.m.Opsets[domain]; ok && old != version {
		return invalidAt(f.at, "operator set %q is imported as version %d and as version %d", domain, old, version)
	}
	rd.m.Opsets[domain] = version
	return rd.keep(f.at, int64(len(domain)))
}

// metadata reads one StringStringEntryProto of metadata_props.
func (rd *reader) metadata(f field) error {
	if err := rd.keep(f.at, f.span.len()); err != nil {
		return err
	}
	key, value, err := entry(rd.scanner, f)
	rd.m.Metadata[key] = value
	return err
}

// entry reads StringStringEntryProto, whose size the caller has already counted.
func entry(s *scanner, f field) (key, value string, err error) {
	err = s.each(f.span, "StringStringEntryProto", func(g field) (err error) {
		switch {
		case g.num == 1 && g.typ == protowire.BytesType:
			key, err = s.text(g)
		case g.num == 2 && g.typ == protowire.BytesType:
			value, err = s.read(g)
		}
		return err
	})
	return key, value, err
}

// training reads TrainingInfoProto, which has two graphs. Their initializers do not belong to
// the model.
func (rd *reader) training(sp span) error {
	return rd.each(sp, "TrainingInfoProto", func(f field) error {
		if (f.num == 1 || f.num == 2) && f.typ == protowire.BytesType {
			return rd.graph(f.span, 0, false)
		}
		return nil
	})
}

// function reads FunctionProto.
func (rd *reader) function(f field) error {
	var name, domain string
	err := rd.each(f.span, "FunctionProto", func(g field) (err error) {
		if g.typ != protowire.BytesType {
			return nil
		}
		switch g.num {
		case 1:
			name, err = rd.text(g)
		case 7:
			err = rd.node(g, 0, false)
		case 10:
			domain, err = rd.text(g)
		case 11:
			_, err = rd.attribute(g.span, 0)
		}
		return err
	})
	if err != nil {
		return err
	}
	rd.functions[[2]string{canonicalDomain(domain), name}] = true
	return rd.keep(f.at, int64(len(domain)+len(name)))
}

// finish returns an error if the file is not a model, and sets the fields that depend on the
// whole file.
func (rd *reader) finish() error {
	switch m := rd.m; {
	case rd.graphs == 0:
		return registry.Errorf(registry.CodeInvalid, "not an ONNX model: no graph in its %d bytes", rd.size)
	case m.IRVersion < 1:
		return registry.Errorf(registry.CodeInvalid, "not an ONNX model: IR version %d, expected 1 or more", m.IRVersion)
	case len(m.Opsets) == 0:
		return registry.Errorf(registry.CodeInvalid,
			"no operator set in an ONNX file of %d bytes: it was cut off after the graph, or is older than IR version 3; export the model again", rd.size)
	case len(m.Outputs) == 0:
		return registry.Errorf(registry.CodeInvalid,
			"the ONNX graph has no outputs, so there is nothing to run it for; export the model again")
	}
	rd.m.Inputs = slices.DeleteFunc(rd.m.Inputs, func(v Value) bool { return rd.initializers[v.Name] })
	rd.flow.through()
	rd.m.ExternalData = slices.Sorted(maps.Keys(rd.m.ExternalBytes))
	for f := range rd.functions {
		rd.m.Functions = append(rd.m.Functions, f[0]+"."+f[1])
	}
	slices.Sort(rd.m.Functions)
	rd.m.custom, rd.m.flow = map[string]bool{}, rd.flow
	for call := range rd.calls {
		if !rd.functions[call] {
			rd.m.custom[call[0]] = true
		}
	}
	return nil
}

// isONNX reports whether the bytes look like a ModelProto: an IR version and a graph among
// fields with the right wire types, up to the end or to where the file was truncated.
func isONNX(r io.ReaderAt, size int64) bool {
	s := newScanner(r, size, Limits{MaxFields: 1 << 16})
	var version, graph bool
	for at := int64(0); at < size; {
		f, next, err := s.next(at, span{0, size}, "ModelProto")
		if want, known := wireTypes[f.num]; known && want != f.typ {
			return false
		}
		graph = graph || f.num == 7
		if err != nil {
			return version && graph && f.span.end > size
		}
		version = version || f.num == 1 && f.val > 0
		at = next
	}
	return version && graph
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }
