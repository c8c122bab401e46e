package tensorfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// npyText is an npy file, version 1.0, of this dtype and shape.
func npyText(descr, shape string, fortran bool, data []byte) []byte {
	order := "False"
	if fortran {
		order = "True"
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", descr, order, shape)
	file := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(head)))
	return append(append(file, head...), data...)
}

func wide(order binary.AppendByteOrder, width int, texts ...string) []byte {
	var data []byte
	for _, text := range texts {
		runes := append([]rune(text), make([]rune, width)...)[:width]
		for _, r := range runes {
			data = order.AppendUint32(data, uint32(r))
		}
	}
	return data
}

func TestReadNpyText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file  []byte
		want  string
		shape []int64
		wrong error
	}{
		"bytes":            {npyText("|S3", "(2,)", false, []byte("ab\x00cde")), "ab|cde", []int64{2, 3}, nil},
		"characters":       {npyText("<U3", "(2, 1)", false, wide(binary.LittleEndian, 3, "Zü", "abc")), "Zü|abc", []int64{2, 1, 3}, nil},
		"big-endian":       {npyText(">U2", "(2,)", false, wide(binary.BigEndian, 2, "ü", "日本")), "ü|日本", []int64{2, 6}, nil},
		"empty":            {npyText("<U0", "(2,)", false, nil), "|", []int64{2, 1}, nil},
		"no cases":         {npyText("<U4", "(0,)", false, nil), "", []int64{0, 1}, nil},
		"one dimension":    {npyText("|S1", "(2,)", true, []byte("ab")), "a|b", []int64{2, 1}, nil},
		"Fortran order":    {npyText("|S1", "(2, 1)", true, []byte("ab")), "", nil, tensor.ErrUnsupported},
		"no UTF-8":         {npyText("|S1", "(1,)", false, []byte("\xff")), "", nil, tensor.ErrMalformed},
		"too wide":         {npyText("<U70000", "(1,)", false, make([]byte, 280000)), "", nil, tensor.ErrUnsupported},
		"no byte order":    {npyText("|U1", "(1,)", false, make([]byte, 4)), "", nil, tensor.ErrUnsupported},
		"cut short":        {npyText("<U2", "(1,)", false, make([]byte, 7)), "", nil, tensor.ErrMalformed},
		"a zero in a text": {npyText("|S3", "(1,)", false, []byte("a\x00b")), "", nil, tensor.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tensorfile.ReadNpy(bytes.NewReader(c.file), tensorfile.Limits{})
			if c.wrong != nil {
				if !errors.Is(err, c.wrong) {
					t.Errorf("error %v, want %v", err, c.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			texts, err := tensor.UnpackText(got)
			if err != nil || strings.Join(texts, "|") != c.want || !slices.Equal(got.Shape, c.shape) {
				t.Errorf("text %q of shape %v (%v), want %q of %v", texts, got.Shape, err, c.want, c.shape)
			}
		})
	}
}
