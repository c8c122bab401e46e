package distribution_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/mem"
)

// A caller that has pushed as many referrers of a subject as allowed cannot push more. Other
// subjects, other callers and existing referrers are not affected.
func TestTooManyReferrers(t *testing.T) {
	t.Parallel()
	caller := "token:ci"
	db := mem.New()
	c := memory(t)
	c.Refs, c.Deleter, c.MaxReferrers, c.ReferrerCounts = db, db, 2, db
	c.Principal = func(context.Context) string { return caller }
	w := listen(t, c)
	push := func(subject string, n int) answer {
		t.Helper()
		raw := image(t, w, repo, map[string]any{
			"subject":     map[string]any{"mediaType": typeImage, "digest": digest.FromString(subject), "size": 1},
			"annotations": map[string]string{"n": fmt.Sprint(n)},
		})
		return w.putManifest(t, repo, digest.FromString(raw).String(), typeImage, raw)
	}
	push("a", 1).want(t, 201, "")
	push("a", 2).want(t, 201, "")
	if refused := push("a", 3).want(t, 403, "DENIED"); !strings.Contains(string(refused.body),
		"token:ci pushed 2 manifests about "+digest.FromString("a").String()) {
		t.Errorf("got %s, want the caller, the number and the subject", refused.body)
	}
	push("a", 2).want(t, 201, "")
	push("b", 1).want(t, 201, "")
	w.pushImage(t, repo, "1.0.0", nil)
	caller = "token:other"
	push("a", 1).want(t, 201, "")
	push("a", 4).want(t, 201, "")
	push("a", 5).want(t, 201, "")
	push("a", 6).want(t, 403, "DENIED")
	caller = "" // callers without a name are not bounded
	push("a", 7).want(t, 201, "")
	push("a", 8).want(t, 201, "")
	push("a", 9).want(t, 201, "")
	c.ReferrerCounts = nil
	if _, err := distribution.New(c); err == nil {
		t.Error("got nil for a bound without ReferrerCounts, want an error")
	}
}
