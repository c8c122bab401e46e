package tensorfile_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

func TestReadNpzRefusesPathsThatLeadOut(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../x.npy", "/x.npy", "a/../../x.npy", `a\x.npy`, "a//x.npy"} {
		var archive bytes.Buffer
		w := zip.NewWriter(&archive)
		if _, err := w.Create(name); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := tensorfile.ReadNpz(bytes.NewReader(archive.Bytes()), int64(archive.Len()), tensorfile.Limits{})
		if !errors.Is(err, tensor.ErrUnsafe) {
			t.Errorf("%q: got %v, want it refused as unsafe", name, err)
		}
	}
}
