package node_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/node"
)

const nodeDocument = `{"v":1,"os":"linux","cpu":{"arch":"amd64","level":"v4","vendor":"AuthenticAMD","model":"AMD EPYC 9654","features":["avx512f","avx2","avx2"]},
 "memoryMiB":7951,"accelerators":[{"vendor":"nvidia","product":"NVIDIA-H200","arch":"sm_90","memoryMiB":143771,"mig":"1g.18gb","driver":"580.65.06"}],
 "runtimes":{"onnxruntime":"1.30.0"},"notes":["emulated"],"source":"machine"}`

const runtimeDocument = `{"v":1,"name":"triton-server:26.10","runtimes":{"tensorrt":"11.4.0.106","cuda":"13.0"}}`

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "document.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestParseFile(t *testing.T) {
	t.Parallel()
	got, err := node.ParseFile(write(t, nodeDocument+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := artifact.Node{
		V: 1, OS: "linux", MemoryMiB: 7951,
		CPU:          artifact.NodeCPU{Arch: "amd64", Level: "v4", Vendor: "AuthenticAMD", Model: "AMD EPYC 9654", Features: []string{"avx2", "avx512f"}},
		Accelerators: []artifact.NodeAccelerator{{Vendor: "nvidia", Product: "NVIDIA-H200", Arch: "sm_90", MemoryMiB: 143771, MIG: "1g.18gb", Driver: "580.65.06"}},
		Runtimes:     map[string]string{"onnxruntime": "1.30.0"}, Notes: []string{"emulated"}, Source: "machine",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseFileRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ from, to, says string }{
		"another version":   {`"v":1`, `"v":2`, "v is 2: want 1"},
		"no version":        {`"v":1,`, ``, "v is 0: want 1"},
		"an unknown key":    {`"source"`, `"sauce"`, `unknown field "sauce"`},
		"a key inside":      {`"level":"v4"`, `"levels":"v4"`, `unknown field "levels"`},
		"text as number":    {`7951`, `"7951"`, "memoryMiB"},
		"something after":   {`"machine"}`, `"machine"} {}`, "follows the document"},
		"the half of it":    {`,"notes":["emulated"],"source":"machine"}`, ``, "EOF"},
		"no os":             {`"os":"linux",`, ``, `os ""`},
		"no arch":           {`"arch":"amd64",`, ``, `cpu.arch ""`},
		"a level too high":  {`"v4"`, `"v5"`, `cpu.level "v5"`},
		"a level of ARM":    {`"arch":"amd64"`, `"arch":"arm64"`, "only for amd64"},
		"a feature, loudly": {`"avx2"`, `"AVX2"`, `cpu.features[1] "AVX2"`},
		"a colour":          {`AMD EPYC 9654`, "AMD \\u001b[31m", "cpu.model"},
		"negative memory":   {`7951`, `-1`, "memoryMiB is -1"},
		"product in words":  {`NVIDIA-H200`, `NVIDIA H200`, `accelerators[0].product "NVIDIA H200"`},
		"half a profile":    {`1g.18gb`, `1g`, `accelerators[0].mig "1g"`},
		"a driver's name":   {`580.65.06`, `newest`, `accelerators[0].driver "newest"`},
		"a range":           {`1.30.0`, `>=1.30`, `runtimes.onnxruntime ">=1.30"`},
		"a hyphen first":    {`"onnxruntime"`, `"-onnxruntime"`, `runtimes: name "-onnxruntime"`},
		"a plus in a name":  {`"onnxruntime"`, `"onnx+runtime"`, `runtimes: name "onnx+runtime"`},
		"a long name":       {`"onnxruntime"`, `"` + strings.Repeat("a", 64) + `"`, "runtimes: name"},
		"no runtime's name": {`"onnxruntime"`, `""`, `runtimes: name ""`},
		"a note in lines":   {`"emulated"`, `"a\nb"`, "notes[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(nodeDocument, tc.from) {
				t.Fatalf("the document holds no %q", tc.from)
			}
			path := write(t, strings.Replace(nodeDocument, tc.from, tc.to, 1))
			_, err := node.ParseFile(path)
			checkRefused(t, err, registry.CodeInvalid, path, tc.says)
		})
	}
	t.Run("as long as it may be", func(t *testing.T) {
		t.Parallel()
		if _, err := node.ParseFile(write(t, nodeDocument+strings.Repeat(" ", 1<<20-len(nodeDocument)))); err != nil {
			t.Errorf("error %v, want none", err)
		}
	})
	t.Run("too long", func(t *testing.T) {
		t.Parallel()
		path := write(t, nodeDocument+strings.Repeat(" ", 1<<20))
		_, err := node.ParseFile(path)
		checkRefused(t, err, registry.CodeInvalid, path, "more than 1048576 bytes")
	})
	t.Run("not there", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "nothing.json")
		_, err := node.ParseFile(path)
		checkRefused(t, err, registry.CodeNotFound, path, "no such file")
	})
	t.Run("a folder", func(t *testing.T) {
		t.Parallel()
		path := t.TempDir()
		_, err := node.ParseFile(path)
		checkRefused(t, err, registry.CodeInvalid, path, "directory")
	})
}

func checkRefused(t *testing.T, err error, code registry.Code, says ...string) {
	t.Helper()
	if !registry.HasCode(err, code) {
		t.Fatalf("error %v, want code %s", err, code)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("error %q does not say %q", err, s)
		}
	}
}

func TestParseRuntime(t *testing.T) {
	t.Parallel()
	got, err := node.ParseRuntime("onnxruntime:1.30.0")
	want := artifact.Runtime{V: 1, Name: "onnxruntime:1.30.0", Runtimes: map[string]string{"onnxruntime": "1.30.0"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	got, err = node.ParseRuntime(write(t, runtimeDocument))
	want = artifact.Runtime{V: 1, Name: "triton-server:26.10", Runtimes: map[string]string{"tensorrt": "11.4.0.106", "cuda": "13.0"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestParseRuntimeRefuses(t *testing.T) {
	t.Parallel()
	for arg, says := range map[string]string{
		"onnxruntime":                        "no such file",
		"onnxruntime:latest":                 "no such file",
		"":                                   "no such file",
		"onnxruntime:99999999999999999999.0": "exact version",
	} {
		_, err := node.ParseRuntime(arg)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want %q", arg, err, says)
		}
	}
	if r, err := node.ParseRuntime(t.TempDir()); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("a folder: %+v, error %v, want CodeInvalid", r, err)
	}
	if _, err := node.ParseRuntime("onnxruntime"); len(registry.Hints(err)) != 1 {
		t.Errorf("hints %q, want one that shows both forms", registry.Hints(err))
	}
	for document, says := range map[string]string{
		`{"v":1,"name":"x","runtimes":{}}`:                 "runtimes is empty",
		`{"v":2,"name":"x","runtimes":{"cuda":"13.0"}}`:    "v is 2",
		`{"v":1,"name":"","runtimes":{"cuda":"13.0"}}`:     `name ""`,
		`{"v":1,"name":"x","runtimes":{"cuda":""}}`:        "runtimes.cuda",
		`{"v":1,"name":"x","runtimes":{"cuda":{"min":1}}}`: "cannot unmarshal",
		`{"v":1,"name":"x","runtime":{"cuda":"13.0"}}`:     "unknown field",
		`{"v":1,"name":"x","runtimes":{"CUDA":"13.0"}}`:    `name "CUDA"`,
	} {
		_, err := node.ParseRuntime(write(t, document))
		checkRefused(t, err, registry.CodeInvalid, "document.json", says)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(nodeDocument))
	f.Add([]byte(`{"v":1,"os":"linux","cpu":{"arch":"arm64"},"accelerators":[],"notes":[],"runtimes":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if n, err := node.Parse("fuzz", data); err == nil {
			checkRoundTrip(t, n)
		} else if !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("error without its code: %v", err)
		}
	})
}

func FuzzParseRuntime(f *testing.F) {
	f.Add([]byte(runtimeDocument))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := node.ParseRuntimeDocument("fuzz", data)
		switch {
		case err != nil && !registry.HasCode(err, registry.CodeInvalid):
			t.Errorf("error without its code: %v", err)
		case err == nil && (r.V != 1 || len(r.Runtimes) == 0):
			t.Errorf("accepted a runtime that says nothing: %+v", r)
		}
	})
}
