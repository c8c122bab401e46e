package install_test

import (
	"context"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/registry"
)

// answer is an image whose Python reports this about itself.
type answer string

func (a answer) Query(context.Context, string, ...string) (string, error) { return string(a), nil }

// The files of a Python in an image are not those of this machine at the same paths: here there are none. The digest of the image
// says what they are.
func TestAdoptImage(t *testing.T) {
	t.Parallel()
	version, image := locked(t), registry.Digest("sha256:"+strings.Repeat("0", 64))
	in := answer(`{"python": "3.12.3", "executable": "/only/in/the/image/bin/python3", "prefix": "/only/in/the/image", "base": "/only/in/the/image",
		"site": "/only/in/the/image/lib", "sites": ["/only/in/the/image/lib"], "packages": [{"name": "numpy", "version": "` + version + `", "record": ""}]}`)
	r, err := (&install.Installer{Folder: t.TempDir()}).AdoptImage(t.Context(), hostName, in, image)
	if err != nil || r.Lock != image || r.Image != image || r.Version != version || r.Python != "3.12.3" {
		t.Errorf("adopted %+v (%v), want numpy %s of the image", r, err, version)
	}
}
