// Package onnx reads untrusted ONNX models on the wire, without their weights: inputs, outputs, operators, the files that
// they refer to, how inputs are used, and the scales of quantized tensors.
package onnx

import (
	"io"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/protobuf"
)

// Read reads the metadata of the ONNX model in the size bytes of r. It skips weights, and
// its memory does not depend on the size.
//
// A file that is not a complete, well-formed model gives [registry.CodeInvalid] and the
// position: a truncated file, an invalid message, a model without graph, operator sets, IR
// version or outputs, or one beyond lim. A model that makes a runtime read from a memory
// address gives [registry.CodeUnsafe]. An error of r itself is passed on without a code.
func Read(r io.ReaderAt, size int64, lim bound.Limits) (*Model, error) {
	rd, err := read(r, size, lim)
	if err != nil {
		return nil, err
	}
	return rd.m, rd.producers()
}

// read reads all but what needs a second look.
func read(r io.ReaderAt, size int64, lim bound.Limits) (*reader, error) {
	lim = lim.WithDefaults()
	if size > lim.MaxBytes {
		return nil, registry.Errorf(registry.CodeInvalid,
			"%d bytes; an ONNX file may have at most %d: save its tensors as external data", size, lim.MaxBytes)
	}
	m := &Model{Opsets: map[string]int64{}, Ops: map[string]int{},
		ExternalBytes: map[string]int64{}, Metadata: map[string]string{}, Tensors: map[string]int{},
		Producers: map[string]string{}, ProducerNames: map[string]string{}}
	rd := &reader{
		Scanner: protobuf.NewScanner(r, size, lim),
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
	*protobuf.Scanner
	lim          bound.Limits
	m            *Model
	graphs       int
	main         protobuf.Span // the graph
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
	return rd.Each(rd.All(), "ModelProto", func(f protobuf.Field) (err error) {
		if want, known := wireTypes[f.Num]; known && want != f.Type {
			return protobuf.Invalid(f.At,
				"not an ONNX model: field %d of ModelProto has wire type %d instead of %d", f.Num, f.Type, want)
		}
		switch f.Num {
		case 1:
			rd.m.IRVersion = int64(f.Val)
		case 2:
			rd.m.Producer, err = rd.Text(f)
		case 3:
			rd.m.ProducerVersion, err = rd.Text(f)
		case 7:
			if rd.graphs++; rd.graphs > 1 {
				return protobuf.Invalid(f.At, "a second graph; a model has one")
			}
			rd.main = f.Span
			err = rd.graph(f.Span, 0, true)
		case 8:
			err = rd.opset(f)
		case 14:
			err = rd.metadata(f)
		case 20:
			err = rd.training(f.Span)
		case 25:
			err = rd.function(f)
		}
		return err
	})
}

// opset reads OperatorSetIdProto.
func (rd *reader) opset(f protobuf.Field) error {
	var domain string
	var version int64
	err := rd.Each(f.Span, "OperatorSetIdProto", func(g protobuf.Field) (err error) {
		switch {
		case g.Num == 1 && g.Type == protowire.BytesType:
			domain, err = rd.Text(g)
		case g.Num == 2 && g.Type == protowire.VarintType:
			version = int64(g.Val)
		}
		return err
	})
	if err != nil {
		return err
	}
	domain = canonicalDomain(domain)
	if version < 1 {
		return protobuf.Invalid(f.At, "operator set %q has version %d; versions start at 1", domain, version)
	}
	if old, ok := rd.m.Opsets[domain]; ok && old != version {
		return protobuf.Invalid(f.At, "operator set %q is imported as version %d and as version %d", domain, old, version)
	}
	rd.m.Opsets[domain] = version
	return rd.Keep(f.At, int64(len(domain)))
}

// metadata reads one StringStringEntryProto of metadata_props.
func (rd *reader) metadata(f protobuf.Field) error {
	if err := rd.Keep(f.At, f.Span.Len()); err != nil {
		return err
	}
	key, value, err := entry(rd.Scanner, f)
	rd.m.Metadata[key] = value
	return err
}

// entry reads StringStringEntryProto, whose size the caller has already counted.
func entry(s *protobuf.Scanner, f protobuf.Field) (key, value string, err error) {
	err = s.Each(f.Span, "StringStringEntryProto", func(g protobuf.Field) (err error) {
		switch {
		case g.Num == 1 && g.Type == protowire.BytesType:
			key, err = s.Text(g)
		case g.Num == 2 && g.Type == protowire.BytesType:
			value, err = s.Read(g)
		}
		return err
	})
	return key, value, err
}

// training reads TrainingInfoProto, which has two graphs. Their initializers do not belong to
// the model.
func (rd *reader) training(sp protobuf.Span) error {
	return rd.Each(sp, "TrainingInfoProto", func(f protobuf.Field) error {
		if (f.Num == 1 || f.Num == 2) && f.Type == protowire.BytesType {
			return rd.graph(f.Span, 0, false)
		}
		return nil
	})
}

// function reads FunctionProto.
func (rd *reader) function(f protobuf.Field) error {
	var name, domain string
	err := rd.Each(f.Span, "FunctionProto", func(g protobuf.Field) (err error) {
		if g.Type != protowire.BytesType {
			return nil
		}
		switch g.Num {
		case 1:
			name, err = rd.Text(g)
		case 7:
			err = rd.node(g, 0, false)
		case 10:
			domain, err = rd.Text(g)
		case 11:
			_, err = rd.attribute(g.Span, 0)
		}
		return err
	})
	if err != nil {
		return err
	}
	rd.functions[[2]string{canonicalDomain(domain), name}] = true
	return rd.Keep(f.At, int64(len(domain)+len(name)))
}

// finish returns an error if the file is not a model, and sets the fields that depend on the
// whole file.
func (rd *reader) finish() error {
	switch m := rd.m; {
	case rd.graphs == 0:
		return registry.Errorf(registry.CodeInvalid, "not an ONNX model: no graph in its %d bytes", rd.Size)
	case m.IRVersion < 1:
		return registry.Errorf(registry.CodeInvalid, "not an ONNX model: IR version %d, expected 1 or more", m.IRVersion)
	case len(m.Opsets) == 0:
		return registry.Errorf(registry.CodeInvalid,
			"no operator set in an ONNX file of %d bytes: it was cut off after the graph, or is older than IR version 3; export the model again", rd.Size)
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

// Is reports whether the bytes look like a ModelProto: an IR version and a graph among
// fields with the right wire types, up to the end or to where the file was truncated.
func Is(r io.ReaderAt, size int64) bool {
	s := protobuf.NewScanner(r, size, bound.Limits{MaxFields: 1 << 16})
	var version, graph bool
	for at := int64(0); at < size; {
		f, next, err := s.Next(at, s.All(), "ModelProto")
		if want, known := wireTypes[f.Num]; known && want != f.Type {
			return false
		}
		graph = graph || f.Num == 7
		if err != nil {
			return version && graph && f.Span.End > size
		}
		version = version || f.Num == 1 && f.Val > 0
		at = next
	}
	return version && graph
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }
