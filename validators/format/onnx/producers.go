package onnx

import (
	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/validators/format/protobuf"
)

// producers finds the operators that make the outputs of the graph. Its nodes come before its
// outputs in a file, so they are read once more: keeping the names of all their results would take
// memory that depends on the size of the graph.
func (rd *reader) producers() error {
	wanted := make(map[string]bool, len(rd.m.Outputs))
	for _, output := range rd.m.Outputs {
		wanted[output.Name] = true
	}
	again := rd.Again(rd.lim)
	return again.Each(rd.main, "GraphProto", func(f protobuf.Field) error {
		if f.Num != 1 || f.Type != protowire.BytesType {
			return nil
		}
		var made []string
		var op, node string
		err := again.Each(f.Span, "NodeProto", func(g protobuf.Field) error {
			if g.Type != protowire.BytesType || (g.Num < 2 || g.Num > 4) {
				return nil
			}
			text, err := again.Text(g)
			switch {
			case g.Num == 3:
				node = text
			case g.Num == 4:
				op = text
			case wanted[text]:
				made = append(made, text)
			}
			return err
		})
		for _, name := range made {
			rd.m.Producers[name], rd.m.ProducerNames[name] = op, node
		}
		return err
	})
}
