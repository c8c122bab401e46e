package onnx

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/validators/format/protobuf"
)

const (
	// maxClasses bounds the names of classes that are kept.
	maxClasses = 1 << 16
	// maxClassName bounds the bytes of one.
	maxClassName = 256
)

// classAttributes are the attributes of classifiers and of ZipMap that name the classes
// (onnx, docs/Operators-ml.md).
var classAttributes = map[string]bool{"classlabels_strings": true, "classlabels_int64s": true, "classlabels_ints": true}

// class reads a name or number of a class, if the attribute has such. An attribute with more or
// longer names than are kept has none.
func (rd *reader) class(f protobuf.Field, a *flowAttribute) error {
	if !classAttributes[a.name] || len(a.classes) > maxClasses {
		return nil
	}
	if f.Type == protowire.VarintType {
		return rd.addClass(f, a, strconv.FormatInt(int64(f.Val), 10))
	}
	if f.Type != protowire.BytesType {
		return nil
	}
	if f.Num == 9 {
		if f.Span.Len() > maxClassName {
			a.classes = make([]string, maxClasses+1)
			return nil
		}
		name, err := rd.Read(f)
		if err != nil {
			return err
		}
		return rd.addClass(f, a, name)
	}
	for at := f.Span.Start; at < f.Span.End && len(a.classes) <= maxClasses; {
		val, next, err := rd.Varint(at, f.Span, "a list of numbers")
		if err != nil {
			return err
		}
		if err := rd.addClass(f, a, strconv.FormatInt(int64(val), 10)); err != nil {
			return err
		}
		at = next
	}
	return nil
}

func (rd *reader) addClass(f protobuf.Field, a *flowAttribute, name string) error {
	a.classes = append(a.classes, name)
	return rd.Keep(f.At, int64(len(name)))
}

// keepClasses keeps the classes of a node of the main graph, if no other node has different ones.
func (rd *reader) keepClasses(a flowAttribute, main bool) {
	if !main || len(a.classes) == 0 || len(a.classes) > maxClasses || rd.m.otherClasses {
		return
	}
	if rd.m.Classes != nil && !slices.Equal(rd.m.Classes, a.classes) {
		rd.m.Classes, rd.m.otherClasses = nil, true
		return
	}
	rd.m.Classes = a.classes
}
