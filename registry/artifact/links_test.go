package artifact_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Every digest in a manifest is a mention, but that of its subject.
func TestManifestLinks(t *testing.T) {
	t.Parallel()
	a, b, c := digest.FromString("a"), digest.SHA512.FromString("b"), digest.FromString("c")
	raw := fmt.Sprintf(`{"config":{"digest":%q},"x":[{"y":{"z":%q}}],"annotations":{"k":%q,"other":"sha256:short"},"subject":{"digest":%q,"k":%q}}`, a, b, a, c, b)
	want := artifact.Links{Subject: c, Mentions: []registry.Digest{a, b}}
	slices.Sort(want.Mentions)
	if got, err := artifact.ManifestLinks([]byte(raw)); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("error %v, (-want +got):\n%s", err, cmp.Diff(want, got))
	}
	for _, bad := range []string{``, `null`, `[]`, `"x"`, `{`, `{}{}`} {
		if _, err := artifact.ManifestLinks([]byte(bad)); registry.CodeOf(err) != registry.CodeInvalid || err == nil {
			t.Errorf("%s: got %v, want CodeInvalid", bad, err)
		}
	}
	odd := fmt.Sprintf(`{"subject":%q}`, a) // no descriptor, so a mention
	if got, err := artifact.ManifestLinks([]byte(odd)); err != nil || !slices.Equal(got.Mentions, []registry.Digest{a}) || got.Subject != "" {
		t.Errorf("%s: got %+v, %v", odd, got, err)
	}
}

func TestModelOf(t *testing.T) {
	t.Parallel()
	for repository, want := range map[string]string{
		"staging/digits": "digits false", "staging/vision/digits": "vision/digits false",
		"staging/vision/digits/sources": "vision/digits true", "staging/sources": "sources false", "alone": " false",
	} {
		model, sources := registry.ModelOf(repository)
		if got := fmt.Sprint(model, " ", sources); got != want {
			t.Errorf("%s: got %q, want %q", repository, got, want)
		}
	}
}
