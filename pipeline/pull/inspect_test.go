package pull_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/pull"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// hostile is a registry of others, which has a pickle for each file of an engine.
type hostile struct{ of *world }

func (h hostile) Fetch(ctx context.Context, repository string, d registry.Digest, dir string) (storage.FetchedPart, error) {
	part, err := h.of.Puller.Parts.Fetch(ctx, repository, d, dir)
	for _, f := range part.Files {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, f.Path), []byte("\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R."), 0o600)
		}
	}
	return part, err
}

// An engine that runs code when it is loaded is refused by what it is, whoever signed it, and leaves nothing.
func TestPullInspects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(p *pull.Puller, w *world)
		code   registry.Code
		says   string
	}{
		"a pickle":           {func(p *pull.Puller, w *world) { p.Parts = hostile{w} }, registry.CodeUnsafe, "model.onnx: its bytes are a Python pickle"},
		"without inspection": {func(p *pull.Puller, _ *world) { p.Inspect = nil }, registry.CodeUnavailable, "cannot be inspected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.Promoted(t, registrytest.Build{})
			puller := w.Puller
			c.change(&puller, w)
			_, err := puller.Pull(t.Context(), query("prod"), w.dir, pull.Expectation{})
			if !registry.HasCode(err, c.code) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %s and %q", err, c.code, c.says)
			}
			if left, err := os.ReadDir(filepath.Dir(w.dir)); err != nil || len(left) != 0 {
				t.Errorf("%v is left, error %v; want nothing", left, err)
			}
		})
	}
}
