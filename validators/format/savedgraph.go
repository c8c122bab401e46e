package format

import (
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// isSavedModel recognizes version 1 of SavedModel with only graphs in it: the first graph must
// have a GraphDef.
func isSavedModel(r io.ReaderAt, size int64) bool {
	s := newScanner(r, size, Limits{MaxFields: 1 << 16})
	var version, graph bool
	err := s.each(span{0, size}, "SavedModel", func(f field) error {
		switch {
		case f.num == 1 && f.typ == protowire.VarintType && f.val == 1:
			version = true
		case f.num == 2 && f.typ == protowire.BytesType:
			return s.descend("SavedModel", f.span, []protowire.Number{2}, func(field) error { graph = true; return nil })
		default:
			return invalidAt(f.at, "no field of SavedModel")
		}
		return nil
	})
	return err == nil && version && graph
}
