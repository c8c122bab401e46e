package tensorfile

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// numpyNames are the dtypes that numpy knows, by its names. Others cannot be written.
var numpyNames = map[tensor.DType]string{
	tensor.Bool: "|b1", tensor.Int8: "|i1", tensor.Uint8: "|u1", tensor.Int16: "<i2", tensor.Uint16: "<u2", tensor.Int32: "<i4", tensor.Uint32: "<u4", tensor.Int64: "<i8", tensor.Uint64: "<u8",
	tensor.Float16: "<f2", tensor.Float32: "<f4", tensor.Float64: "<f8",
}

// WriteNpz writes tensors as numpy.load reads them with names: a zip archive of npy files of version 1.0, not
// compressed, in the order of their names. Equal arguments give equal bytes. Errors: kind ErrUnsupported for a
// dtype that numpy does not have.
func WriteNpz(w io.Writer, tensors map[string]tensor.Tensor) error {
	archive := zip.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		member, err := archive.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
		if err != nil {
			return err
		}
		if err := writeNpy(member, tensors[name]); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
	}
	return archive.Close()
}

// writeNpy writes an array. Source: numpy/lib/format.py, version 1.0.
func writeNpy(w io.Writer, t tensor.Tensor) error {
	if err := t.Validate(); err != nil {
		return err
	}
	name, ok := numpyNames[t.DType]
	if !ok {
		return tensor.Errorf(tensor.ErrUnsupported, "numpy has no dtype %s", t.DType)
	}
	var dims strings.Builder
	for _, n := range t.Shape {
		fmt.Fprintf(&dims, "%d,", n)
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", name, dims.String())
	const lead = len(npyMagic) + 4
	text += strings.Repeat(" ", (64-(lead+len(text)+1)%64)%64) + "\n"
	head := append([]byte(npyMagic), 1, 0)
	head = append(binary.LittleEndian.AppendUint16(head, uint16(len(text))), text...)
	if _, err := w.Write(head); err != nil {
		return err
	}
	_, err := w.Write(t.Data)
	return err
}
