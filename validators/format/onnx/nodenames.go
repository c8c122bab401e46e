package onnx

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/protobuf"
)

// NodeNames lists the nodes of an operator in the main graph of the ONNX model in a file, by name and in their order,
// at most so many. A node without a name is called as our quantizer calls it, by its operator and its position among
// all nodes: "Conv_12". Errors: as [Read], with the name of the
// file.
func NodeNames(path, op string, most int, lim bound.Limits) ([]string, error) {
	f, err := bound.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	rd, err := read(f, info.Size(), lim)
	if err != nil {
		return nil, bound.InFile(path, err)
	}
	var names []string
	at := -1
	again := rd.Again(rd.lim)
	err = again.Each(rd.main, "GraphProto", func(f protobuf.Field) error {
		if f.Num != 1 || f.Type != protowire.BytesType {
			return nil
		}
		at++
		name, operator, err := named(again, f)
		if operator != op || len(names) == most {
			return err
		}
		if name == "" {
			name = fmt.Sprintf("%s_%d", op, at)
		}
		names = append(names, name)
		return err
	})
	return names, bound.InFile(path, err)
}

// named reads name and operator of a node.
func named(s *protobuf.Scanner, node protobuf.Field) (name, op string, err error) {
	err = s.Each(node.Span, "NodeProto", func(f protobuf.Field) (err error) {
		switch {
		case f.Type != protowire.BytesType:
		case f.Num == 3:
			name, err = s.Text(f)
		case f.Num == 4:
			op, err = s.Text(f)
		}
		return err
	})
	return name, op, err
}
