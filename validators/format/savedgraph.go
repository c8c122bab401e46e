package format

import (
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/protobuf"
)

// isSavedModel recognizes version 1 of SavedModel with only graphs in it: the first graph must
// have a GraphDef.
func isSavedModel(r io.ReaderAt, size int64) bool {
	s := protobuf.NewScanner(r, size, bound.Limits{MaxFields: 1 << 16})
	var version, graph bool
	err := s.Each(s.All(), "SavedModel", func(f protobuf.Field) error {
		switch {
		case f.Num == 1 && f.Type == protowire.VarintType && f.Val == 1:
			version = true
		case f.Num == 2 && f.Type == protowire.BytesType:
			return s.Descend("SavedModel", f.Span, []protowire.Number{2}, func(protobuf.Field) error { graph = true; return nil })
		default:
			return protobuf.Invalid(f.At, "no field of SavedModel")
		}
		return nil
	})
	return err == nil && version && graph
}
