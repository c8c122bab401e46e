package format_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/validators/format"
)

func TestCheckPart(t *testing.T) {
	t.Parallel()
	const pickle, elf = "\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.", "\x7fELF\x02\x01\x01\x00"
	for name, c := range map[string]struct {
		content string
		native  bool
		kind    artifact.FileKind
		says    string // empty: it passes
	}{
		"text":                       {content: "cat\ndog\n"},
		"a pickle":                   {content: pickle, says: "sub/file.bin: its bytes are a Python pickle"},
		"a pickle in a native part":  {content: pickle, native: true, says: "sub/file.bin: its bytes are a Python pickle"},
		"native code":                {content: elf, says: "only an engine that is labelled native-code may hold it"},
		"native code of such a part": {content: elf, native: true},
		"an operator library":        {content: elf, kind: artifact.FileCode},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "sub", "file.bin"), []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			part := storage.FetchedPart{Engine: artifact.Engine{NativeCode: c.native},
				Files: []artifact.File{{Path: "sub/file.bin", Size: int64(len(c.content)), Kind: c.kind}}}
			err := format.CheckPart(dir, part)
			if c.says == "" && err != nil {
				t.Errorf("error %v, want none", err)
			}
			if c.says != "" && (!registry.HasCode(err, registry.CodeUnsafe) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want CodeUnsafe and %q", err, c.says)
			}
		})
	}
}
