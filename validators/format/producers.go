package format

import "google.golang.org/protobuf/encoding/protowire"

// producers finds the operators that make the outputs of the graph. Its nodes come before its
// outputs in a file, so they are read once more: keeping the names of all their results would take
// memory that depends on the size of the graph.
func (rd *reader) producers() error {
	wanted := make(map[string]bool, len(rd.m.Outputs))
	for _, output := range rd.m.Outputs {
		wanted[output.Name] = true
	}
	again := rd.again()
	return again.each(rd.main, "GraphProto", func(f field) error {
		if f.num != 1 || f.typ != protowire.BytesType {
			return nil
		}
		var made []string
		var op, node string
		err := again.each(f.span, "NodeProto", func(g field) error {
			if g.typ != protowire.BytesType || (g.num < 2 || g.num > 4) {
				return nil
			}
			text, err := again.text(g)
			switch {
			case g.num == 3:
				node = text
			case g.num == 4:
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
