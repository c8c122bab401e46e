package onnx

import (
	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/validators/format/protobuf"
)

// graph reads GraphProto. Only the inputs, outputs and initializers of the main graph are
// recorded; nodes and tensors are counted in all graphs.
func (rd *reader) graph(sp protobuf.Span, depth int, main bool) error {
	if depth > rd.lim.MaxDepth {
		return protobuf.Invalid(sp.Start, "subgraphs are nested more than %d deep", rd.lim.MaxDepth)
	}
	return rd.Each(sp, "GraphProto", func(f protobuf.Field) (err error) {
		if f.Type != protowire.BytesType {
			return rd.unexpected(f, "GraphProto", 16)
		}
		switch f.Num {
		case 1:
			err = rd.node(f, depth, main)
		case 5:
			err = rd.initializer(f, main, false)
		case 11:
			err = rd.value(f, main, &rd.m.Inputs)
		case 12:
			err = rd.value(f, main, &rd.m.Outputs)
		case 15:
			err = rd.initializer(f, main, true)
		}
		return err
	})
}

// unexpected refuses a known field of the message with an unexpected wire type, and ignores
// fields of later versions of the format.
func (rd *reader) unexpected(f protobuf.Field, message string, last protowire.Number) error {
	if f.Num > last {
		return nil
	}
	return protobuf.Invalid(f.At, "field %d of %s has wire type %d, expected %d", f.Num, message, f.Type, protowire.BytesType)
}

// node reads NodeProto. Of the main graph it keeps what a flow has use for.
func (rd *reader) node(f protobuf.Field, depth int, main bool) error {
	if rd.m.Nodes++; rd.m.Nodes > rd.lim.MaxNodes {
		return protobuf.Invalid(f.At, "more than %d nodes", rd.lim.MaxNodes)
	}
	var op, domain string
	var n flowNode
	err := rd.Each(f.Span, "NodeProto", func(g protobuf.Field) (err error) {
		if g.Type != protowire.BytesType {
			return rd.unexpected(g, "NodeProto", 9)
		}
		switch g.Num {
		case 1, 2:
			err = rd.link(g, &n, main)
		case 4:
			op, err = rd.Text(g)
		case 5:
			var a flowAttribute
			a, err = rd.attribute(g.Span, depth)
			n.keep(a)
			rd.keepClasses(a, main)
		case 7:
			domain, err = rd.Text(g)
		}
		return err
	})
	if err != nil {
		return err
	}
	if op == "" {
		return protobuf.Invalid(f.At, "a node without an operator type")
	}
	if main {
		rd.flow.add(n, canonicalDomain(domain), op)
	}
	return rd.count(f.At, canonicalDomain(domain), op)
}

// link reads the name of an input or output of a node.
func (rd *reader) link(f protobuf.Field, n *flowNode, main bool) error {
	if !main {
		return nil
	}
	id, err := rd.valueID(f)
	if !rd.flow.charge(8) {
		return err
	}
	if f.Num == 1 {
		n.in = append(n.in, id)
	} else {
		n.out = append(n.out, id)
	}
	return err
}

// count counts a node by its operator.
func (rd *reader) count(at int64, domain, op string) error {
	key := domain + "." + op
	if rd.m.Ops[key]++; rd.m.Ops[key] == 1 {
		if err := rd.Keep(at, int64(len(key))); err != nil {
			return err
		}
	}
	if call := [2]string{domain, op}; !isStandardDomain(domain) && !rd.calls[call] {
		rd.calls[call] = true
		return rd.Keep(at, int64(len(key)))
	}
	return nil
}

// attribute reads AttributeProto, for the tensors and subgraphs in it.
func (rd *reader) attribute(sp protobuf.Span, depth int) (flowAttribute, error) {
	var a flowAttribute
	err := rd.Each(sp, "AttributeProto", func(f protobuf.Field) (err error) {
		if f.Num == 3 && f.Type == protowire.VarintType {
			a.numbers = []int64{int64(f.Val)}
		}
		if f.Num == 8 && len(a.numbers) <= maxFlowRank {
			a.numbers = append(a.numbers, rd.wholes(f)...)
		}
		if f.Num == 8 || f.Num == 9 {
			if err := rd.class(f, &a); err != nil {
				return err
			}
		}
		if f.Type != protowire.BytesType {
			return nil
		}
		switch f.Num {
		case 1, 4:
			err = rd.shortText(f, &a)
		case 5, 10:
			var t tensor
			t, err = rd.tensor(f)
			c := t.constant()
			a.tensor = &c
		case 6, 11:
			err = rd.graph(f.Span, depth+1, false)
		case 22, 23:
			_, err = rd.sparse(f)
		}
		return err
	})
	return a, err
}

// shortText reads the name or text of an attribute, unless it is longer than any that a flow knows.
func (rd *reader) shortText(f protobuf.Field, a *flowAttribute) (err error) {
	if f.Span.Len() > 32 {
		return nil
	}
	into := &a.name
	if f.Num == 4 {
		into = &a.text
	}
	*into, err = rd.Read(f)
	return err
}

// initializer reads a TensorProto or SparseTensorProto of a graph.
func (rd *reader) initializer(f protobuf.Field, main, sparse bool) error {
	read := rd.tensor
	if sparse {
		read = rd.sparse
	}
	t, err := read(f)
	if err != nil || !main {
		return err
	}
	if rd.m.InitializerBytes += t.bytes; rd.m.InitializerBytes < 0 {
		return protobuf.Invalid(f.At, "initializers of more than 2^63 bytes")
	}
	rd.initializers[t.name] = true
	rd.flow.constant(t)
	return rd.Keep(f.At, int64(len(t.name)))
}

// sparse reads SparseTensorProto. Its name is that of its values.
func (rd *reader) sparse(f protobuf.Field) (tensor, error) {
	var t tensor
	err := rd.Each(f.Span, "SparseTensorProto", func(g protobuf.Field) error {
		if (g.Num != 1 && g.Num != 2) || g.Type != protowire.BytesType {
			return nil
		}
		part, err := rd.tensor(g)
		if g.Num == 1 {
			t.name = part.name
		}
		if t.bytes += part.bytes; t.bytes < 0 {
			return protobuf.Invalid(g.At, "a sparse tensor of more than 2^63 bytes")
		}
		return err
	})
	return t, err
}
