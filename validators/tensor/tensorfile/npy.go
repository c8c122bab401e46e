package tensorfile

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"mlpromote.dev/mlpromote/validators/tensor"
)

const (
	npyMagic = "\x93NUMPY"
	// maxNpyHeader is the limit of numpy itself for untrusted files.
	maxNpyHeader = 10_000
)

// ReadNpy reads one array in numpy's npy format, versions 1.0, 2.0 and 3.0 (numpy/lib/format),
// up to the end of r: trailing bytes are an error. It swaps big-endian data and transposes
// Fortran order, so that the result is little-endian in C order. It refuses object arrays,
// which are pickles, with kind ErrUnsafe, without reading them. Memory depends on the bytes
// that arrive, not on the size in the header.
func ReadNpy(r io.Reader, limits Limits) (tensor.Tensor, error) {
	return readNpy(r, limits.withDefaults())
}

// readNpy is ReadNpy with limits in which zero allows nothing.
func readNpy(r io.Reader, limits Limits) (tensor.Tensor, error) {
	head, err := readNpyHeader(r)
	if err != nil {
		return tensor.Tensor{}, err
	}
	h, err := parseNpyHeader(head)
	if err != nil {
		return tensor.Tensor{}, err
	}
	if len(h.info.Shape) > limits.MaxRank {
		return tensor.Tensor{}, tensor.Errorf(tensor.ErrLimit, "npy: %d dimensions, the limit is %d", len(h.info.Shape), limits.MaxRank)
	}
	size, err := h.info.Bytes()
	if err != nil {
		return tensor.Tensor{}, tensor.Errorf(tensor.ErrMalformed, "npy: %v", err)
	}
	if size > limits.MaxTensorBytes {
		return tensor.Tensor{}, tensor.Errorf(tensor.ErrLimit,
			"npy: %s %v has %d bytes, the limit is %d", h.info.DType, h.info.Shape, size, limits.MaxTensorBytes)
	}
	data, err := readExactly(r, size)
	if err != nil {
		return tensor.Tensor{}, err
	}
	return h.asBytes(h.normalize(tensor.Tensor{DType: h.info.DType, Shape: h.info.Shape, Data: data}))
}

// readNpyHeader returns the text of the header.
func readNpyHeader(r io.Reader) ([]byte, error) {
	var lead [len(npyMagic) + 2]byte
	if n, err := io.ReadFull(r, lead[:]); err != nil {
		return nil, npyShort(err, lead[:n])
	}
	if string(lead[:len(npyMagic)]) != npyMagic {
		return nil, npyForeign(lead[:])
	}
	width := 4
	switch version := [2]byte(lead[len(npyMagic):]); version {
	case [2]byte{1, 0}:
		width = 2
	case [2]byte{2, 0}, [2]byte{3, 0}:
	default:
		return nil, tensor.Errorf(tensor.ErrUnsupported, "npy: version %d.%d: expected 1.0, 2.0 or 3.0", version[0], version[1])
	}
	var length [4]byte
	if _, err := io.ReadFull(r, length[:width]); err != nil {
		return nil, npyShort(err, lead[:])
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > maxNpyHeader {
		return nil, tensor.Errorf(tensor.ErrLimit, "npy: header of %d bytes, the limit is %d", n, maxNpyHeader)
	}
	head := make([]byte, n)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, npyShort(err, lead[:])
	}
	return head, nil
}

// npyShort returns an error for the end of the data; other errors of a reader pass unchanged.
func npyShort(err error, lead []byte) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if len(lead) < len(npyMagic) || string(lead[:len(npyMagic)]) != npyMagic {
		return npyForeign(lead)
	}
	return tensor.Errorf(tensor.ErrMalformed, "npy: the file ends within its header")
}

func npyForeign(lead []byte) error {
	// A pickle of protocol 2 to 5 begins with the opcode PROTO and its number;
	// np.load would run it.
	if len(lead) >= 2 && lead[0] == 0x80 && lead[1] <= 5 {
		return tensor.Errorf(tensor.ErrUnsafe,
			"npy: this is a pickle, which runs code when it is loaded: save the array with numpy.save(..., allow_pickle=False)")
	}
	return tensor.Errorf(tensor.ErrMalformed, "npy: it begins with %q, and arrays of numpy.save with %q", lead, npyMagic)
}

// readExactly reads n bytes and checks that r ends there.
func readExactly(r io.Reader, n int64) ([]byte, error) {
	const first = 1 << 20
	data := make([]byte, 0, min(n, first))
	for int64(len(data)) < n {
		if len(data) == cap(data) {
			data = slices.Grow(data, int(min(n-int64(len(data)), int64(len(data)))))
		}
		room := min(int64(cap(data)), n)
		got, err := io.ReadFull(r, data[len(data):room])
		data = data[:len(data)+got]
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, tensor.Errorf(tensor.ErrMalformed, "npy: %d bytes of data, expected %d: the file is cut short", len(data), n)
		} else if err != nil {
			return nil, err
		}
	}
	var extra [1]byte
	switch _, err := io.ReadFull(r, extra[:]); {
	case err == nil:
		return nil, tensor.Errorf(tensor.ErrMalformed, "npy: more than the %d bytes of data that shape and dtype ask for", n)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return data, nil
}
