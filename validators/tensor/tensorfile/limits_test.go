package tensorfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
	"mlpromote.dev/mlpromote/validators/tensor/tensortest"
)

// wantKindOrNone expects an error of a kind, or none.
func wantKindOrNone(t *testing.T, err, kind error) {
	t.Helper()
	if kind == nil && err != nil {
		t.Errorf("error %v, want none", err)
	}
	if kind != nil {
		tensortest.WantKind(t, err, kind)
	}
}

// A file that needs all that a limit allows is read.
func TestSafetensorsAtTheLimits(t *testing.T) {
	t.Parallel()
	data := write(t, map[string]tensor.Tensor{
		"a": tensortest.Must(tensor.New(make([]float32, 6), 3, 2)), "b": tensortest.Must(tensor.New(make([]float32, 6), 3, 2)),
	}, nil)
	header := int64(binary.LittleEndian.Uint64(data))
	for name, c := range map[string]struct {
		limits tensorfile.Limits
		kind   error
	}{
		"header":              {tensorfile.Limits{MaxHeaderBytes: header}, nil},
		"header, a byte less": {tensorfile.Limits{MaxHeaderBytes: header - 1}, tensor.ErrLimit},
		"tensors":             {tensorfile.Limits{MaxTensors: 2}, nil},
		"tensors, one less":   {tensorfile.Limits{MaxTensors: 1}, tensor.ErrLimit},
		"rank":                {tensorfile.Limits{MaxRank: 2}, nil},
		"rank, one less":      {tensorfile.Limits{MaxRank: 1}, tensor.ErrLimit},
		"bytes":               {tensorfile.Limits{MaxTensorBytes: 24}, nil},
		"bytes, one less":     {tensorfile.Limits{MaxTensorBytes: 23}, tensor.ErrLimit},
		"total":               {tensorfile.Limits{MaxTotalBytes: 48}, nil},
		"total, one less":     {tensorfile.Limits{MaxTotalBytes: 47}, tensor.ErrLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "x.safetensors")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			all, err := tensorfile.ReadFile(path, c.limits)
			wantKindOrNone(t, err, c.kind)
			if c.kind != nil && all != nil {
				t.Errorf("%d tensors come with an error", len(all))
			}
		})
	}
}

// endless is a file of zeros behind its first bytes.
type endless []byte

func (e endless) ReadAt(p []byte, offset int64) (int, error) {
	clear(p)
	if offset < int64(len(e)) {
		copy(p, e[offset:])
	}
	return len(p), nil
}

// The format has a limit of its own on headers. What is below it and above ours is no fault of the file.
func TestSafetensorsHeaderOfTheFormat(t *testing.T) {
	t.Parallel()
	for size, kind := range map[int64]error{100_000_000: tensor.ErrLimit, 100_000_001: tensor.ErrMalformed} {
		_, err := tensorfile.NewFile(endless(binary.LittleEndian.AppendUint64(nil, uint64(size))), 8+size, tensorfile.Limits{})
		tensortest.WantKind(t, err, kind)
	}
}

func TestSafetensorsSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"header longer than the file": {[]byte{3, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, "header of 3 bytes in a file of 10"},
		"metadata in a list":          {safetensors(`{"__metadata__":["a","b"]}`), `__metadata__: expected "{"`},
		"an entry that is a list":     {safetensors(`{"x":["dtype","U8"]}`), `"x": expected "{"`},
		"a shape that is an object":   {safetensors(`{"x":{"shape":{}}}`), `"x" shape: expected "["`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := open(c.data, tensorfile.Limits{})
			tensortest.WantKind(t, err, tensor.ErrMalformed)
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v does not say %q", err, c.says)
			}
		})
	}
}

// brokenAt is a disk that fails from some byte on.
type brokenAt struct {
	data []byte
	from int64
}

var errDisk = errors.New("broken disk")

func (b brokenAt) ReadAt(p []byte, offset int64) (int, error) {
	if offset+int64(len(p)) > b.from {
		return 0, errDisk
	}
	return bytes.NewReader(b.data).ReadAt(p, offset)
}

func (b brokenAt) WriteAt(p []byte, offset int64) (int, error) {
	if offset+int64(len(p)) > b.from {
		return 0, errDisk
	}
	return len(p), nil
}

// limitedWriter fails once so many bytes were written.
type limitedWriter int

func (l *limitedWriter) Write(p []byte) (int, error) {
	if *l -= limitedWriter(len(p)); *l < 0 {
		return 0, errDisk
	}
	return len(p), nil
}

// An error of the disk stays one: it says nothing about the file.
func TestErrorsOfTheDisk(t *testing.T) {
	t.Parallel()
	x := tensortest.Must(tensor.New([]int64{1, 2, 3}, 3))
	data := write(t, map[string]tensor.Tensor{"x": x}, nil)
	header := int64(len(data) - 24)
	for _, from := range []int64{0, 8} {
		_, err := tensorfile.NewFile(brokenAt{data, from}, int64(len(data)), tensorfile.Limits{})
		tensortest.WantKind(t, err, errDisk)
	}
	f := tensortest.Must(tensorfile.NewFile(brokenAt{data, header}, int64(len(data)), tensorfile.Limits{}))
	_, err := f.Tensor("x")
	tensortest.WantKind(t, err, errDisk)
	_, err = f.Rows("x", 0, 1)
	tensortest.WantKind(t, err, errDisk)

	infos := map[string]tensor.Info{"x": x.Info()}
	_, err = tensorfile.NewShardWriter(brokenAt{from: header - 1}, infos, nil)
	tensortest.WantKind(t, err, errDisk)
	w := tensortest.Must(tensorfile.NewShardWriter(brokenAt{from: header}, infos, nil))
	if err := w.Append("x", x); err != nil {
		t.Errorf("rows that wait to be written: %v, want nil", err)
	}
	tensortest.WantKind(t, w.Close(), errDisk)

	large := tensortest.Must(tensor.New(make([]int64, 1<<18), 1<<18)) // is written at once, behind its header
	w = tensortest.Must(tensorfile.NewShardWriter(brokenAt{from: 1 << 10}, map[string]tensor.Info{"x": large.Info()}, nil))
	tensortest.WantKind(t, w.Append("x", large), errDisk)

	for _, room := range []int64{header - 1, header} {
		l := limitedWriter(room)
		tensortest.WantKind(t, tensorfile.Write(&l, map[string]tensor.Tensor{"x": x}, nil), errDisk)
	}
}

// A file that is closed is not read any more, and says so when it is closed again.
func TestCloseTwice(t *testing.T) {
	t.Parallel()
	f := tensortest.Must(tensorfile.Open("testdata/dtypes.safetensors", tensorfile.Limits{}))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	tensortest.WantKind(t, f.Close(), os.ErrClosed)
	_, err := f.Tensor("float16")
	tensortest.WantKind(t, err, os.ErrClosed)
}

func TestShardWriterRefusesInvalidRows(t *testing.T) {
	t.Parallel()
	w := tensortest.Must(tensorfile.NewShardWriter(brokenAt{from: 1 << 20}, map[string]tensor.Info{"x": {DType: tensor.Int8, Shape: []int64{2, 3}}}, nil))
	tensortest.WantKind(t, w.Append("x", tensor.Tensor{DType: tensor.Int8, Shape: []int64{1, 3}, Data: make([]byte, 2)}), tensor.ErrMalformed)
	_, err := tensorfile.NewShardWriter(brokenAt{}, map[string]tensor.Info{"x": {DType: tensor.Int64, Shape: []int64{1 << 60}}}, nil)
	tensortest.WantKind(t, err, tensor.ErrMalformed)
	_, err = tensorfile.NewShardWriter(brokenAt{}, map[string]tensor.Info{"x": {DType: tensor.Int8, Shape: []int64{math.MaxInt64 - 100_000_000}}}, nil)
	tensortest.WantKind(t, err, tensor.ErrMalformed)
}

func TestNpyAtTheLimits(t *testing.T) {
	t.Parallel()
	const dict = `{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }`
	padded := func(n int) []byte { return npy(dict+strings.Repeat(" ", n-len(dict)), 1, 2) }
	shaped := func(shape string, data ...byte) []byte {
		return npy(`{'descr': '|u1', 'fortran_order': False, 'shape': (`+shape+`), }`, data...)
	}
	for name, c := range map[string]struct {
		data   []byte
		limits tensorfile.Limits
		kind   error
	}{
		"longest header":       {padded(10_000), tensorfile.Limits{}, nil},
		"header too long":      {padded(10_001), tensorfile.Limits{}, tensor.ErrLimit},
		"highest rank":         {shaped(strings.Repeat("1,", 32), 1), tensorfile.Limits{}, nil},
		"rank too high":        {shaped(strings.Repeat("1,", 33), 1), tensorfile.Limits{}, tensor.ErrLimit},
		"all bytes":            {shaped("2,", 1, 2), tensorfile.Limits{MaxTensorBytes: 2}, nil},
		"a byte too many":      {shaped("3,", 1, 2, 3), tensorfile.Limits{MaxTensorBytes: 2}, tensor.ErrLimit},
		"pickle of protocol 5": {[]byte("\x80\x05N. and more"), tensorfile.Limits{}, tensor.ErrUnsafe},
		"no such protocol":     {[]byte("\x80\x06N. and more"), tensorfile.Limits{}, tensor.ErrMalformed},
		"a pickle's two bytes": {[]byte("\x80\x02"), tensorfile.Limits{}, tensor.ErrUnsafe},
		"one byte of a pickle": {[]byte("\x80"), tensorfile.Limits{}, tensor.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tensorfile.ReadNpy(bytes.NewReader(c.data), c.limits)
			wantKindOrNone(t, err, c.kind)
		})
	}
}

func TestNpyHeaderDetails(t *testing.T) {
	t.Parallel()
	dict := func(descr, order, comma string) []byte {
		return npy("{'descr': "+descr+comma+" 'fortran_order': "+order+", 'shape': (2,)}", 1, 2)
	}
	for name, c := range map[string]struct {
		data []byte
		kind error
	}{
		"bytes in either order": {dict("'>u1'", "False", ","), nil},
		"bytes of this machine": {dict("'=u1'", "False", ","), nil},
		"a column":              {dict("'|u1'", "True", ","), nil},
		"no comma":              {dict("'|u1'", "False", ""), tensor.ErrMalformed},
		"a number as bool":      {dict("'|u1'", "1", ","), tensor.ErrMalformed},
		"words of this machine": {dict("'=u2'", "False", ","), tensor.ErrUnsupported},
		"words of no order":     {dict("'|u2'", "False", ","), tensor.ErrUnsupported},
		"a tuple as descr":      {dict("('a',)", "False", ","), tensor.ErrUnsupported},
		"no string as descr":    {dict("u1", "False", ","), tensor.ErrMalformed},
		"an empty tuple":        {npy(`{'descr': '|u1', 'fortran_order': False, 'shape': (,)}`, 1), tensor.ErrMalformed},
		"a tuple without comma": {npy(`{'descr': '|u1', 'fortran_order': False, 'shape': (1 1)}`, 1), tensor.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, err := readNpy(c.data)
			wantKindOrNone(t, err, c.kind)
			if c.kind == nil && !bytes.Equal(x.Data, []byte{1, 2}) {
				t.Errorf("data %v, want 1 and 2", x.Data)
			}
		})
	}
}

// Data of more than a mebibyte arrives in pieces.
func TestNpyOfManyBytes(t *testing.T) {
	t.Parallel()
	const size = 5<<20 + 1
	data := make([]byte, size)
	data[0], data[1<<20], data[size-1] = 1, 2, 3
	whole := npy(fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%d,)}", size), data...)
	x, err := tensorfile.ReadNpy(io.MultiReader(bytes.NewReader(whole[:3<<20]), bytes.NewReader(whole[3<<20:])), tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x.Data, data) {
		t.Error("the data is not what was written")
	}
	_, err = readNpy(whole[:len(whole)-1])
	tensortest.WantKind(t, err, tensor.ErrMalformed)
}
