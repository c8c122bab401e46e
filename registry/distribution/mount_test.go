package distribution_test

import (
	"context"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/distribution"
)

func TestMountBlob(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		d := w.pushBlob(t, other, "content")
		w.do(t, "POST", at(repo, "blobs/uploads/?mount="+d.String()+"&from="+other), nil).
			want(t, 201, "").wantHeader(t, "Location", at(repo, "blobs", d)).wantHeader(t, "Docker-Content-Digest", d.String())
		w.wantBlob(t, repo, "content", true)
	})
}

// A mount that cannot be made begins an upload, whatever the reason.
func TestMountFallsBackToUpload(t *testing.T) {
	t.Parallel()
	secret := func(_ context.Context, a distribution.Access) error {
		if a.Repository == "prod/secret" && a.Action == distribution.Pull {
			return registry.Errorf(registry.CodeForbidden, "not for you")
		}
		return nil
	}
	everywhere(t, func(t *testing.T, open *world) {
		d := open.pushBlob(t, "prod/secret", "content")
		c := open.Config
		c.Authorize = secret
		w := listen(t, c)
		for name, query := range map[string]string{
			"no right":         "?mount=" + d.String() + "&from=prod/secret",
			"no blob":          "?mount=" + digest.FromString("no").String() + "&from=" + other,
			"no repository":    "?mount=" + d.String() + "&from=no/where",
			"malformed source": "?mount=" + d.String() + "&from=../prod/secret",
			"no source":        "?mount=" + d.String(),
		} {
			a := w.do(t, "POST", at(repo, "blobs/uploads/"+query), nil).want(t, 202, "")
			w.wantBlob(t, repo, "content", false)
			mine := digest.FromString(name)
			w.do(t, "PUT", w.location(t, a)+"?digest="+mine.String(), strings.NewReader(name)).want(t, 201, "")
		}
		w.do(t, "POST", at(repo, "blobs/uploads/?mount=sha256:x&from="+other), nil).want(t, 400, "DIGEST_INVALID")
	})
}
