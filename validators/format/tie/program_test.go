package tie_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/tie"
)

// kernel is the header of a kernel as ptxas writes it, with the flags and the version of the format that it has: Triton 3.6
// writes version 7, with 0x500550 for sm_80 and 0x5a0d5a for sm_90; Triton 3.9 version 8, with 0x9005a04 for sm_90.
func kernel(version byte, flags uint32) string {
	head := make([]byte, 64)
	copy(head, "\x7fELF\x02\x01\x01\x33")
	head[8] = version
	binary.LittleEndian.PutUint16(head[16:], 2)
	binary.LittleEndian.PutUint16(head[18:], 190)
	binary.LittleEndian.PutUint32(head[48:], flags)
	return string(head)
}

const (
	cpuSays  = `{"torch": "2.15.0", "AOTI_DEVICE_KEY": "cpu", "AOTI_PLATFORM": "linux", "AOTI_COMPUTE_CAPABILITY": ""}`
	cudaSays = `{"torch": "2.11.0", "AOTI_DEVICE_KEY": "cuda", "AOTI_COMPUTE_CAPABILITY": "90"}`
)

// pt2 is an archive with these entries, name and content by turns, stored as they are.
func pt2(t testing.TB, entries ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := 0; i < len(entries); i += 2 {
		f, err := w.CreateHeader(&zip.FileHeader{Name: entries[i], Method: zip.Store})
		if err == nil {
			_, err = f.Write([]byte(entries[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestReadPackages(t *testing.T) {
	t.Parallel()
	so, level := "m/data/model.wrapper.so", string(object(0xc0008002, 4))
	compressed := func() []byte {
		var out bytes.Buffer
		w := zip.NewWriter(&out)
		f, err := w.Create(so)
		if err == nil {
			_, err = f.Write([]byte(strings.Repeat(level, 9)))
		}
		if err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}()
	for name, c := range map[string]struct {
		data []byte
		want tie.Tie
		says string
		code registry.Code
	}{
		"for a processor": {pt2(t, so, level, "m/a_metadata.json", cpuSays, "m/b_metadata.json", cpuSays, "m/version", "1"),
			tie.Tie{Runtime: "2.15.0", Backend: "llvm-cpu", Arch: "x86-64-v3"}, "", ""},
		"for a GPU": {pt2(t, so, level, "m/a_metadata.json", cudaSays, "m/k.cubin", kernel(7, 0x5a0d5a), "m/l.cubin", kernel(8, 0x9005a04)),
			tie.Tie{Runtime: "2.11.0", Backend: "cuda", Arch: "sm_90", Host: "x86-64-v3"}, "", ""},
		"for a GPU, without kernels": {pt2(t, so, level, "m/a_metadata.json", cudaSays),
			tie.Tie{Runtime: "2.11.0", Backend: "cuda", Arch: "sm_90", Host: "x86-64-v3"}, "", ""},
		"kernels for another GPU":  {pt2(t, so, level, "m/a_metadata.json", cudaSays, "m/k.cubin", kernel(7, 0x500550)), tie.Tie{}, "for cuda 90 with torch 2.11.0, and has kernels for sm_80", registry.CodeInvalid},
		"kernels for two GPUs":     {pt2(t, so, level, "m/a_metadata.json", cudaSays, "m/k.cubin", kernel(7, 0x5a0d5a), "m/l.cubin", kernel(7, 0x500550)), tie.Tie{}, "want one architecture", registry.CodeInvalid},
		"kernels for a processor":  {pt2(t, so, level, "m/a_metadata.json", cpuSays, "m/k.cubin", kernel(7, 0x5a0d5a)), tie.Tie{}, "for cpu", registry.CodeInvalid},
		"kernels that are none":    {pt2(t, so, level, "m/a_metadata.json", cudaSays, "m/k.cubin", level), tie.Tie{}, "not code for NVIDIA's devices", registry.CodeInvalid},
		"two devices":              {pt2(t, so, level, "m/a_metadata.json", cpuSays, "m/b_metadata.json", cudaSays), tie.Tie{}, "want one device", registry.CodeInvalid},
		"two shared objects":       {pt2(t, so, level, "m/b.so", level, "m/a_metadata.json", cpuSays), tie.Tie{}, "more than one shared object", registry.CodeInvalid},
		"no shared object":         {pt2(t, "m/a_metadata.json", cpuSays), tie.Tie{}, "want a shared object", registry.CodeInvalid},
		"no metadata":              {pt2(t, so, level), tie.Tie{}, "want a shared object, and metadata", registry.CodeInvalid},
		"no version":               {pt2(t, so, level, "m/a_metadata.json", `{"AOTI_DEVICE_KEY": "cpu"}`), tie.Tie{}, "the version of PyTorch", registry.CodeInvalid},
		"metadata that are none":   {pt2(t, so, level, "m/a_metadata.json", "[]"), tie.Tie{}, "not JSON", registry.CodeInvalid},
		"much metadata":            {pt2(t, so, level, "m/a_metadata.json", `{"torch": "`+strings.Repeat("2", 70000)+`"}`), tie.Tie{}, "bytes of metadata", registry.CodeInvalid},
		"an object of no level":    {pt2(t, so, string(object(0xc0000002, 4)), "m/a_metadata.json", cpuSays), tie.Tie{}, "level of x86-64", registry.CodeInvalid},
		"a path out of the folder": {pt2(t, "../../etc/cron.d/x", "x", so, level, "m/a_metadata.json", cpuSays), tie.Tie{}, "stays in its folder", registry.CodeUnsafe},
		"an absolute path":         {pt2(t, "/etc/cron.d/x", "x"), tie.Tie{}, "stays in its folder", registry.CodeUnsafe},
		"a path of another system": {pt2(t, `m\..\..\x`, "x"), tie.Tie{}, "stays in its folder", registry.CodeUnsafe},
		"a name twice":             {pt2(t, so, level, so, level), tie.Tie{}, "each only once", registry.CodeUnsafe},
		"compressed":               {compressed, tie.Tie{}, "is compressed", registry.CodeInvalid},
		"no archive":               {[]byte("PK"), tie.Tie{}, "not a package of AOTInductor", registry.CodeInvalid},
		"cut short":                {pt2(t, so, level, "m/a_metadata.json", cpuSays)[:100], tie.Tie{}, "not a package of AOTInductor", registry.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tie.Package(bytes.NewReader(c.data), int64(len(c.data)))
			if got != c.want {
				t.Errorf("tie %+v, want %+v", got, c.want)
			}
			if (err == nil) != (c.says == "") || err != nil && (!registry.HasCode(err, c.code) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want %s and %q", err, c.code, c.says)
			}
		})
	}
}

// flat is a flatbuffer whose root table has, in field 9, a vector of these texts.
func flat(texts ...string) []byte {
	le := binary.LittleEndian
	out := le.AppendUint32(nil, 32) // the root table is behind its offsets
	out = append(out, make([]byte, 4)...)
	offsets := make([]byte, 24) // two lengths, and fields 0 to 9
	le.PutUint16(offsets, 24)
	le.PutUint16(offsets[2:], 8)
	le.PutUint16(offsets[4+2*9:], 4)
	out = append(out, offsets...)
	out = le.AppendUint32(out, 24) // back to the offsets
	out = le.AppendUint32(out, 4)  // to the vector
	out = le.AppendUint32(out, uint32(len(texts)))
	at := 4 * len(texts)
	for i, text := range texts {
		out = le.AppendUint32(out, uint32(at-4*i))
		at += 4 + len(text)
	}
	for _, text := range texts {
		out = append(le.AppendUint32(out, uint32(len(text))), text...)
	}
	return out
}

func TestReadExports(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data []byte
		want string
		says string
	}{
		"for a processor":   {flat("cpu"), "cpu", ""},
		"for GPUs":          {flat("cuda"), "cuda", ""},
		"for both":          {flat("cpu", "cuda"), "", "for 2 platforms"},
		"for none":          {flat(), "", "for 0 platforms"},
		"a long name":       {flat(strings.Repeat("x", 100)), "", "cannot be read"},
		"cut short":         {flat("cuda")[:44], "", "cannot be read"},
		"without the field": {flat("cuda")[:10], "", "jax.export"},
		"no flatbuffer":     {[]byte("JAX"), "", "not a program of jax.export"},
	} {
		got, err := tie.Export(bytes.NewReader(c.data), int64(len(c.data)))
		if got != (tie.Tie{Backend: c.want}) || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: tie %+v, error %v; want %q, or an error that says %q", name, got, err, c.want, c.says)
		}
	}
}

// FuzzPackages expects an answer for any bytes, and an error with a code.
func FuzzPackages(f *testing.F) {
	f.Add(pt2(f, "m/a.so", string(object(0xc0008002, 4)), "m/a_metadata.json", cudaSays, "m/k.cubin", kernel(7, 0x5a0d5a)))
	f.Add(flat("cuda"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for kind, read := range map[string]tie.Reader{"package": tie.Package, "export": tie.Export} {
			if _, err := read(bytes.NewReader(data), int64(len(data))); err != nil && registry.CodeOf(err) == "" {
				t.Errorf("%s: error %v has no code", kind, err)
			}
		}
	})
}
