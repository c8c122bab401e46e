package format_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/formattest"
)

// seed adds every test file, and what the tests build.
func seed(f *testing.F) {
	f.Helper()
	var files []string
	for _, pattern := range []string{"testdata/*.*", "onnx/testdata/*.*"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			f.Fatalf("no test files: %v", err)
		}
		files = append(files, found...)
	}
	for _, name := range []string{"tokens.onnx", "segments.onnx"} {
		files = append(files, "../../cmd/mlpromote/testdata/models/"+name)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(formattest.Small()))
	f.Add([]byte(formattest.Nested(3)))
	f.Add([]byte(formattest.ModelOf(formattest.GraphOf(formattest.Msg{}.Sub(5, formattest.External("w.bin", "1", "2"))))))
	f.Add([]byte(formattest.Saved(formattest.Msg{}.Str(2, "MatMul").Sub(5, formattest.Msg{}.Str(1, "f").Sub(2, formattest.Msg{}.Sub(10, formattest.Msg{}.Str(1, "ReadFile")))))))
	f.Add(formattest.Zipped(f, "a/data.pkl", "\x80\x02."))
	f.Add(formattest.Zipped(f, "a", "I1\n."))
	f.Add(compress(f, []byte("I1\n."), gz))
	f.Add(compress(f, []byte("I1\n."), zl))
	for _, c := range corpus(f) {
		if len(c.data) < 1<<16 {
			f.Add(c.data)
		}
	}
	f.Add(honestGGUF())
	f.Add([]byte("{L\x00\x00\x00\x00\x00\x00\x00\x07learner{i\x01a[$d#i\x01\x00\x00\x00\x00}}"))
	f.Add([]byte(`{"learner":{"a":[1,{"b":"c"}]},"version":[3,4,1]}`))
	f.Add([]byte("tree\nversion=v4\nTree=0\nend of trees\n"))
	f.Add([]byte(`<?xml version="1.0"?><PMML><!-- a --><![CDATA[ b ]]></PMML>`))
}

// FuzzGate expects an answer for any bytes, and never an error without a code; what a label says changes
// nothing but for native code.
func FuzzGate(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		plain, labelled := gate(false, data), gate(true, data)
		if plain != nil && registry.CodeOf(plain) != registry.CodeUnsafe && registry.CodeOf(plain) != registry.CodeInvalid {
			t.Errorf("%v, code %q", plain, registry.CodeOf(plain))
		}
		if plain == nil && labelled != nil {
			t.Errorf("refused for being labelled: %v", labelled)
		}
		if sniff(data).CarriesCode() && plain == nil {
			t.Errorf("%v passes", sniff(data))
		}
	})
}

// FuzzGateWrapped expects that what is refused alone is refused in every wrapper.
func FuzzGateWrapped(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || len(data) > 1<<20 || !sniff(data).CarriesCode() {
			return
		}
		for name, wrapped := range map[string][]byte{
			"zip": formattest.Zipped(t, "a", string(data)), "stored zip": stored(t, "a", string(data)),
			"tar": tarred(t, "a", string(data)), "gzip": compress(t, data, gz),
			"compressed tar": compress(t, tarred(t, "a", string(data)), gz),
		} {
			if gate(false, wrapped) == nil {
				t.Errorf("%v in a %s passes", sniff(data), name)
			}
		}
	})
}

// FuzzSniff expects an answer for any bytes, the same each time.
func FuzzSniff(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		kind := sniff(data)
		if again := sniff(data); again != kind {
			t.Errorf("%v, then %v", kind, again)
		}
		if (kind == format.Empty) != (len(data) == 0) {
			t.Errorf("%d bytes are %v", len(data), kind)
		}
		if len(data) > 2 && data[0] == 0x80 && data[1] <= 5 && strings.ContainsRune("c(]})NX\x8c\x93\x95", rune(data[2])) && kind != format.Pickle {
			t.Errorf("a pickle's header is %v", kind)
		}
	})
}
