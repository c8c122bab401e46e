package tensorfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
	"mlpromote.dev/mlpromote/validators/tensor/tensortest"
)

// npy builds an npy file, version 1.0, of any header and data.
func npy(header string, data ...byte) []byte {
	out := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	return append(append(out, header...), data...)
}

func readNpy(data []byte) (tensor.Tensor, error) {
	return tensorfile.ReadNpy(bytes.NewReader(data), tensorfile.Limits{})
}

func TestNpyGolden(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"c", "v2", "v3", "big_endian"} {
		x := tensortest.Must(readNpy(tensortest.Must(os.ReadFile("testdata/" + name + ".npy"))))
		if got := tensortest.Must(tensor.Values[float32](x)); !slices.Equal(got, []float32{0, 1, 2, 3, 4, 5}) || !slices.Equal(x.Shape, []int64{2, 3}) {
			t.Errorf("%s: %v %v", name, x.Shape, got)
		}
	}
	x := tensortest.Must(readNpy(tensortest.Must(os.ReadFile("testdata/fortran.npy"))))
	for i, got := range tensortest.Must(tensor.Values[int16](x)) {
		if int(got) != i || !slices.Equal(x.Shape, []int64{2, 3, 4}) {
			t.Errorf("fortran: shape %v, element %d is %d", x.Shape, i, got)
		}
	}
	if x := tensortest.Must(readNpy(tensortest.Must(os.ReadFile("testdata/scalar.npy")))); len(x.Shape) != 0 || x.Float64(0) != 2.5 {
		t.Errorf("scalar: %v", x)
	}
}

func TestNpyRefusesPickle(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"object array":   tensortest.Must(os.ReadFile("testdata/object.npy")),
		"object of size": npy(`{'descr': '|O8', 'fortran_order': False, 'shape': (1,)}`),
		"bare pickle":    []byte("\x80\x04\x95\x0a\x00\x00\x00\x00\x00\x00\x00."),
		"short pickle":   []byte("\x80\x02N."),
	} {
		_, err := readNpy(data)
		tensortest.WantKind(t, err, tensor.ErrUnsafe)
		if err != nil && !strings.Contains(err.Error(), "pickle") {
			t.Errorf("%s: %v does not say pickle", name, err)
		}
	}
}

func TestNpyRefuses(t *testing.T) {
	t.Parallel()
	const order, shape = `'fortran_order': False`, `'shape': (2,)`
	dict := func(parts ...string) []byte { return npy("{"+strings.Join(parts, ", ")+"}", 1, 2) }
	if _, err := readNpy(dict(`"shape": (2,)`, order, `'descr': '|u1'`)); err != nil {
		t.Fatalf("the good file: %v", err)
	}
	cases := []struct {
		name string
		data []byte
		kind error
	}{
		{"empty", nil, tensor.ErrMalformed},
		{"magic alone", []byte("\x93NUMPY"), tensor.ErrMalformed},
		{"no length", []byte("\x93NUMPY\x01\x00\x01"), tensor.ErrMalformed},
		{"other file", []byte("PK\x03\x04 and more"), tensor.ErrMalformed},
		{"version 4", []byte("\x93NUMPY\x04\x00\x02\x00{}"), tensor.ErrUnsupported},
		{"header of 4 GiB", []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff{}"), tensor.ErrLimit},
		{"header cut short", []byte("\x93NUMPY\x01\x00\x40\x00{}"), tensor.ErrMalformed},
		{"bfloat16", tensortest.Must(os.ReadFile("testdata/bfloat16.npy")), tensor.ErrUnsupported},
		{"structured", dict(`'descr': [('a', '<f4')]`, order, shape), tensor.ErrUnsupported},
		{"text without a width", dict(`'descr': '<Ux'`, order, shape), tensor.ErrUnsupported},
		{"complex", dict(`'descr': '<c8'`, order, shape), tensor.ErrUnsupported},
		{"no byte order", dict(`'descr': 'f4'`, order, shape), tensor.ErrUnsupported},
		{"empty descr", dict(`'descr': ''`, order, shape), tensor.ErrUnsupported},
		{"key twice", dict(`'descr': '|u1'`, order, shape, shape), tensor.ErrMalformed},
		{"key missing", dict(`'descr': '|u1'`, shape), tensor.ErrMalformed},
		{"unknown key", dict(`'descr': '|u1'`, order, shape, `'x': 1`), tensor.ErrMalformed},
		{"expression", dict(`'descr': '|u1'`, order, `'shape': (1+1,)`), tensor.ErrMalformed},
		{"escape", dict(`'descr': '\x7cu1'`, order, shape), tensor.ErrMalformed},
		{"number as shape", dict(`'descr': '|u1'`, order, `'shape': (2)`), tensor.ErrMalformed},
		{"negative shape", dict(`'descr': '|u1'`, order, `'shape': (-2,)`), tensor.ErrMalformed},
		{"shape of 2^63", dict(`'descr': '|u1'`, order, `'shape': (9223372036854775808,)`), tensor.ErrMalformed},
		{"shape overflows", dict(`'descr': '|u1'`, order, `'shape': (4294967296, 4294967296)`), tensor.ErrMalformed},
		{"open tuple", dict(`'descr': '|u1'`, order, `'shape': (2`), tensor.ErrMalformed},
		{"open dict", npy(`{'descr': '|u1', `), tensor.ErrMalformed},
		{"text behind", npy(`{'descr': '|u1', `+order+`, `+shape+`} x`, 1, 2), tensor.ErrMalformed},
		{"rank", dict(`'descr': '|u1'`, order, `'shape': (`+strings.Repeat("1,", 33)+`)`), tensor.ErrLimit},
		{"data missing", dict(`'descr': '|u1'`, order, `'shape': (3,)`), tensor.ErrMalformed},
		{"data appended", dict(`'descr': '|u1'`, order, `'shape': (1,)`), tensor.ErrMalformed},
		{"4 GiB", dict(`'descr': '|u1'`, order, `'shape': (4294967296,)`), tensor.ErrLimit},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := readNpy(c.data)
			tensortest.WantKind(t, err, c.kind)
		})
	}
}

// TestNpyMemoryFollowsData has a header that asks for 2 GiB and no data.
func TestNpyMemoryFollowsData(t *testing.T) {
	t.Parallel()
	data := npy(`{'descr': '<f4', 'fortran_order': False, 'shape': (536870912,), }`)
	const runs = 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		_, err := readNpy(data)
		tensortest.WantKind(t, err, tensor.ErrMalformed)
	}
	runtime.ReadMemStats(&after)
	// Tests that run beside this one allocate as well, far from gigabytes.
	if got := (after.TotalAlloc - before.TotalAlloc) / runs; got > 256<<20 {
		t.Errorf("%d bytes allocated for a file of %d", got, len(data))
	}
}

func TestNpyReaderErrors(t *testing.T) {
	t.Parallel()
	whole := tensortest.Must(os.ReadFile("testdata/c.npy"))
	broken := errors.New("broken disk")
	for n := range whole {
		_, err := tensorfile.ReadNpy(io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(broken)), tensorfile.Limits{})
		tensortest.WantKind(t, err, broken)
		_, err = readNpy(whole[:n])
		tensortest.WantKind(t, err, tensor.ErrMalformed)
	}
}

// TestNpyOrders writes one array in both byte orders and both layouts.
func TestNpyOrders(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shape := [3]int{}
		for i := range shape {
			shape[i] = rapid.IntRange(0, 4).Draw(t, "dim")
		}
		fortran := rapid.Bool().Draw(t, "fortran")
		var order binary.AppendByteOrder = binary.LittleEndian
		descr := "<i4"
		if rapid.Bool().Draw(t, "big-endian") {
			order, descr = binary.BigEndian, ">i4"
		}
		at := func(i, j, k int) int32 { return int32((i*shape[1]+j)*shape[2] + k) }
		var data []byte
		for x := range shape[0] * shape[1] * shape[2] {
			value := int32(x)
			if fortran {
				value = at(x%shape[0], x/shape[0]%shape[1], x/shape[0]/shape[1])
			}
			data = order.AppendUint32(data, uint32(value))
		}
		text := "{'descr': '" + descr + "', 'fortran_order': " + map[bool]string{true: "True", false: "False"}[fortran] +
			", 'shape': (" + itoa(shape[0]) + ", " + itoa(shape[1]) + ", " + itoa(shape[2]) + "), }   \n"
		got, err := readNpy(npy(text, data...))
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range tensortest.Must(tensor.Values[int32](got)) {
			if int(v) != i {
				t.Fatalf("element %d is %d", i, v)
			}
		}
	})
}

func itoa(i int) string { return string(rune('0' + i)) }

func TestNpyDTypes(t *testing.T) {
	t.Parallel()
	for descr, want := range map[string]tensor.DType{
		"|b1": tensor.Bool, "|i1": tensor.Int8, "<i2": tensor.Int16, "<i4": tensor.Int32, "<i8": tensor.Int64,
		"|u1": tensor.Uint8, "<u2": tensor.Uint16, "<u4": tensor.Uint32, "<u8": tensor.Uint64,
		"<f2": tensor.Float16, "<f4": tensor.Float32, "<f8": tensor.Float64,
	} {
		text := "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (), }"
		x, err := readNpy(npy(text, make([]byte, want.Size())...))
		if err != nil || x.DType != want {
			t.Errorf("%s: %s, %v, want %s", descr, x.DType, err, want)
		}
	}
}
