package onnx_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/formattest"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// External data has to be as long as what the tensors read of it.
func TestExternalDataAtItsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		offset, length string
		size           int
		ok             bool
	}{
		"all of it":                 {"", "", 8, true}, // two float32
		"a byte is missing":         {"", "", 7, false},
		"behind an offset":          {"4", "", 12, true},
		"behind an offset, cut":     {"4", "", 11, false},
		"the length":                {"0", "16", 16, true},
		"the length, cut":           {"0", "16", 15, false},
		"a length of its own, of 0": {"4", "0", 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			formattest.Write(t, dir, "w.bin", make([]byte, c.size))
			path := formattest.Write(t, dir, "model.onnx", formattest.ModelOf(formattest.GraphOf(formattest.Initializer(formattest.External("w.bin", c.offset, c.length)))))
			err := format.Check(path, format.ONNX, bound.Limits{})
			if c.ok && err != nil {
				t.Errorf("error %v, want none", err)
			}
			if !c.ok && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "is truncated")) {
				t.Errorf("error %v, want CodeInvalid that says it is truncated", err)
			}
		})
	}
}

func TestCheckExternalData(t *testing.T) {
	t.Parallel()
	outside := formattest.Write(t, t.TempDir(), "secret", make([]byte, 64))
	dir := t.TempDir()
	formattest.Write(t, dir, "w.bin", make([]byte, 64))
	formattest.Write(t, dir, "sub/w..bin", make([]byte, 64))
	formattest.Write(t, dir, "short.bin", make([]byte, 7))
	for name, target := range map[string]string{"link.bin": outside, "inside.bin": "w.bin", "linked": "sub", "up": ".."} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		location string
		code     registry.Code // empty if it passes
	}{
		{"w.bin", ""}, {"./w.bin", ""}, {"sub/w..bin", ""},
		{outside, registry.CodeUnsafe}, {"../secret", registry.CodeUnsafe}, {"sub/../w.bin", registry.CodeUnsafe},
		{"sub/../../x", registry.CodeUnsafe}, {`..\secret`, registry.CodeUnsafe}, {`C:/secret`, registry.CodeUnsafe},
		{"w.bin\x00", registry.CodeUnsafe}, {strings.Repeat("a", 300), registry.CodeUnsafe},
		{"link.bin", registry.CodeUnsafe}, {"inside.bin", registry.CodeUnsafe}, {"linked/w..bin", registry.CodeUnsafe},
		{"up/x", registry.CodeUnsafe}, {"sub", registry.CodeUnsafe}, {".", registry.CodeUnsafe}, {"w.bin/x", registry.CodeUnsafe},
		{"none.bin", registry.CodeInvalid}, {"short.bin", registry.CodeInvalid},
	}
	for _, tc := range tests {
		t.Run(strings.ReplaceAll(tc.location, "/", "|"), func(t *testing.T) {
			t.Parallel()
			m, err := read(t, formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(5, formattest.External(tc.location, "", "")))))
			if err != nil {
				t.Fatal(err)
			}
			switch err := onnx.CheckExternalData(dir, m); {
			case tc.code == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.code != "":
				formattest.WantCode(t, err, tc.code)
			}
		})
	}
}

// File names have up to 255 bytes.
func TestExternalDataNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for length, code := range map[int]registry.Code{255: registry.CodeInvalid, 256: registry.CodeUnsafe} { // missing, or no name
		m, err := read(t, formattest.ModelOf(formattest.GraphOf(formattest.Initializer(formattest.External(strings.Repeat("w", length), "", "")))))
		if err != nil {
			t.Fatal(err)
		}
		if err := onnx.CheckExternalData(dir, m); !registry.HasCode(err, code) {
			t.Errorf("a name of %d bytes: error %v, want %s", length, err, code)
		}
	}
}
