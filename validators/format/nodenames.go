package format

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// NodeNames lists the nodes of an operator in the main graph of the ONNX model in a file, by name and in their order,
// at most so many. A node without a name is called as our quantizer calls it, by its operator and its position among
// all nodes: "Conv_12". Errors: as [OpenONNX].
func NodeNames(path, op string, most int, lim Limits) ([]string, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	rd, err := readONNX(f, info.Size(), lim)
	if err != nil {
		return nil, withPath(path, err)
	}
	var names []string
	at := -1
	again := rd.again()
	err = again.each(rd.main, "GraphProto", func(f field) error {
		if f.num != 1 || f.typ != protowire.BytesType {
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
	return names, withPath(path, err)
}

// again is a scanner for a second look at the model.
func (rd *reader) again() *scanner {
	return newScanner(rd.r, rd.size, rd.lim)
}

// named reads name and operator of a node.
func named(s *scanner, node field) (name, op string, err error) {
	err = s.each(node.span, "NodeProto", func(f field) (err error) {
		switch {
		case f.typ != protowire.BytesType:
		case f.num == 3:
			name, err = s.text(f)
		case f.num == 4:
			op, err = s.text(f)
		}
		return err
	})
	return name, op, err
}
