package artifact_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

const (
	imageManifest = "application/vnd.oci.image.manifest.v1+json"
	imageIndex    = "application/vnd.oci.image.index.v1+json"
)

func TestDeriveManifest(t *testing.T) {
	t.Parallel()
	subject := digest.FromString("subject")
	for _, tc := range []struct {
		name, mediaType, raw string
		want                 artifact.Derived
	}{
		{"nothing", imageManifest, " {}", artifact.Derived{}},
		{"artifact type", imageManifest, `{"artifactType":"a/b","config":{"mediaType":"c/d"}}`, artifact.Derived{ArtifactType: "a/b"}},
		{"config stands in", imageManifest, `{"config":{"mediaType":"c/d"}}`, artifact.Derived{ArtifactType: "c/d"}},
		{"also in a type nobody knows", "x/y", `{"config":{"mediaType":"c/d"}}`, artifact.Derived{ArtifactType: "c/d"}},
		{"but not in an index", imageIndex, `{"config":{"mediaType":"c/d"}}`, artifact.Derived{}},
		{"index", imageIndex, `{"artifactType":"a/b"}`, artifact.Derived{ArtifactType: "a/b"}},
		{"subject", imageIndex, `{"subject":{"digest":"` + string(subject) + `"}}`, artifact.Derived{Subject: subject}},
		{"annotations", imageManifest, `{"annotations":{"a":"b"}}`, artifact.Derived{Annotations: map[string]string{"a": "b"}}},
	} {
		got, err := artifact.DeriveManifest(tc.mediaType, []byte(tc.raw))
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: error %v, difference (-want +got):\n%s", tc.name, err, diff)
		}
	}
}

func TestDeriveManifestRefuses(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"", "null", "[]", `"x"`, "{", "{}{}", `{"artifactType":1}`, `{"config":"x"}`, `{"annotations":{"a":1}}`,
		`{"subject":{}}`, `{"subject":{"digest":"sha256:x"}}`, `{"subject":{"digest":"../x"}}`,
	} {
		if got, err := artifact.DeriveManifest(imageManifest, []byte(raw)); registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%s: got %+v, %v; want CodeInvalid", raw, got, err)
		}
	}
}

func FuzzDeriveManifest(f *testing.F) {
	f.Add(imageManifest, []byte(`{"artifactType":"a/b","config":{"mediaType":"c/d"},"annotations":{"a":"b"}}`))
	f.Add(imageIndex, []byte(`{"subject":{"digest":"`+string(digest.FromString("subject"))+`"}}`))
	f.Fuzz(func(t *testing.T, mediaType string, raw []byte) {
		derived, err := artifact.DeriveManifest(mediaType, raw)
		if err != nil && registry.CodeOf(err) != registry.CodeInvalid {
			t.Fatalf("error %v, want CodeInvalid", err)
		}
		if err == nil && derived.Subject != "" && derived.Subject.Validate() != nil {
			t.Fatalf("subject %q is no digest", derived.Subject)
		}
	})
}
