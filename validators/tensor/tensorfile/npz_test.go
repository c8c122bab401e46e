package tensorfile_test

import (
	"archive/zip"
	"bytes"
	"hash/crc32"
	"os"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
	"mlpromote.dev/mlpromote/validators/tensor/tensortest"
)

func readNpz(data []byte, limits tensorfile.Limits) (map[string]tensor.Tensor, error) {
	return tensorfile.ReadNpz(bytes.NewReader(data), int64(len(data)), limits)
}

func u1(data ...byte) []byte {
	return npy(`{'descr': '|u1', 'fortran_order': False, 'shape': (`+itoa(len(data))+`,), }`, data...)
}

type member struct {
	name    string
	content []byte
	edit    func(*zip.FileHeader) // on what the archive claims
}

func npz(members ...member) []byte {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, m := range members {
		size := uint64(len(m.content))
		h := &zip.FileHeader{Name: m.name, CRC32: crc32.ChecksumIEEE(m.content), CompressedSize64: size, UncompressedSize64: size}
		if m.edit != nil {
			m.edit(h)
		}
		tensortest.Must(tensortest.Must(w.CreateRaw(h)).Write(m.content))
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

func TestNpzGolden(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"stored", "deflate"} {
		all := tensortest.Must(readNpz(tensortest.Must(os.ReadFile("testdata/"+name+".npz")), tensorfile.Limits{}))
		if len(all) != 2 {
			t.Errorf("%s: %d arrays", name, len(all))
		}
		if got := tensortest.Must(tensor.Values[float32](all["a"])); !slices.Equal(got, []float32{0, 1, 2, 3, 4, 5}) {
			t.Errorf("%s: a is %v", name, got)
		}
		if got := tensortest.Must(tensor.Values[int64](all["label"])); !slices.Equal(got, []int64{1, 0}) {
			t.Errorf("%s: label is %v", name, got)
		}
	}
}

func TestNpzRefuses(t *testing.T) {
	t.Parallel()
	good := member{name: "a.npy", content: u1(1, 2)}
	if all, err := readNpz(npz(good), tensorfile.Limits{}); err != nil || len(all) != 1 {
		t.Fatalf("the good file: %v", err)
	}
	edited := func(edit func(*zip.FileHeader)) []byte { return npz(member{"a.npy", u1(1, 2), edit}) }
	cases := []struct {
		name string
		data []byte
		kind error
	}{
		{"no zip", []byte("PK\x03\x04"), tensor.ErrMalformed},
		{"empty", nil, tensor.ErrMalformed},
		{"name twice", npz(good, good), tensor.ErrMalformed},
		{"other member", npz(good, member{name: "readme.txt"}), tensor.ErrMalformed},
		{"directory", npz(member{name: "a.npy/"}), tensor.ErrMalformed},
		{"pickle member", npz(member{name: "archive/data.pkl"}), tensor.ErrUnsafe},
		{"object array", npz(member{name: "a.npy", content: tensortest.Must(os.ReadFile("testdata/object.npy"))}), tensor.ErrUnsafe},
		{"broken array", npz(member{name: "a.npy", content: []byte("x")}), tensor.ErrMalformed},
		{"encrypted", edited(func(h *zip.FileHeader) { h.Flags |= 1 }), tensor.ErrUnsupported},
		{"method", edited(func(h *zip.FileHeader) { h.Method = 12 }), tensor.ErrUnsupported},
		{"checksum", edited(func(h *zip.FileHeader) { h.CRC32++ }), tensor.ErrMalformed},
		{"declares more", edited(func(h *zip.FileHeader) { h.UncompressedSize64++ }), tensor.ErrMalformed},
		{"declares less", edited(func(h *zip.FileHeader) { h.UncompressedSize64-- }), tensor.ErrMalformed},
		{"declares 2^62", edited(func(h *zip.FileHeader) { h.UncompressedSize64 = 1 << 62 }), tensor.ErrLimit},
		{"no deflate stream", edited(func(h *zip.FileHeader) { h.Method = zip.Deflate }), tensor.ErrMalformed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := readNpz(c.data, tensorfile.Limits{})
			tensortest.WantKind(t, err, c.kind)
		})
	}
}

func TestNpzLimits(t *testing.T) {
	t.Parallel()
	two := npz(member{name: "a.npy", content: u1(1, 2, 3)}, member{name: "b.npy", content: u1(1, 2, 3)})
	for name, limits := range map[string]tensorfile.Limits{
		"tensors": {MaxTensors: 1},
		"bytes":   {MaxTensorBytes: 2},
		"total":   {MaxTotalBytes: 5},
		"nothing": {MaxTotalBytes: -1},
	} {
		_, err := readNpz(two, limits)
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
		tensortest.WantKind(t, err, tensor.ErrLimit)
	}
	if _, err := readNpz(two, tensorfile.Limits{MaxTensors: 2, MaxTensorBytes: 3, MaxTotalBytes: 6}); err != nil {
		t.Errorf("exactly at the limits: %v", err)
	}
}

// TestNpzBomb packs 4 MiB of zeros, once honestly and once declared as small.
func TestNpzBomb(t *testing.T) {
	t.Parallel()
	content := append(npy(`{'descr': '|u1', 'fortran_order': False, 'shape': (4194304,), }`), make([]byte, 4<<20)...)
	var honest bytes.Buffer
	w := zip.NewWriter(&honest)
	tensortest.Must(tensortest.Must(w.Create("a.npy")).Write(content))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := readNpz(honest.Bytes(), tensorfile.Limits{MaxTensorBytes: 1 << 16})
	tensortest.WantKind(t, err, tensor.ErrLimit)

	packed := tensortest.Must(zip.NewReader(bytes.NewReader(honest.Bytes()), int64(honest.Len()))).File[0]
	raw := make([]byte, packed.CompressedSize64)
	tensortest.Must(tensortest.Must(packed.OpenRaw()).Read(raw))
	lying := npz(member{"a.npy", raw, func(h *zip.FileHeader) {
		h.Method, h.CRC32, h.UncompressedSize64 = zip.Deflate, packed.CRC32, 100
	}})
	_, err = readNpz(lying, tensorfile.Limits{MaxTensorBytes: 1 << 16})
	tensortest.WantKind(t, err, tensor.ErrLimit)
}

func TestNpzDirectoryLimit(t *testing.T) {
	t.Parallel()
	var members []member
	name := string(bytes.Repeat([]byte("x"), 60_000))
	for i := range 10 {
		members = append(members, member{name: itoa(i) + name + ".npy", content: u1(1)})
	}
	_, err := readNpz(npz(members...), tensorfile.Limits{MaxHeaderBytes: 1 << 10})
	tensortest.WantKind(t, err, tensor.ErrLimit)
	if _, err := readNpz(npz(members...), tensorfile.Limits{}); err != nil {
		t.Errorf("within the limits: %v", err)
	}
}
