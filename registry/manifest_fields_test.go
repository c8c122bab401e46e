package registry_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
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
		want                 registry.Derived
	}{
		{"nothing", imageManifest, " {}", registry.Derived{}},
		{"artifact type", imageManifest, `{"artifactType":"a/b","config":{"mediaType":"c/d"}}`, registry.Derived{ArtifactType: "a/b"}},
		{"config stands in", imageManifest, `{"config":{"mediaType":"c/d"}}`, registry.Derived{ArtifactType: "c/d"}},
		{"also in a type nobody knows", "x/y", `{"config":{"mediaType":"c/d"}}`, registry.Derived{ArtifactType: "c/d"}},
		{"but not in an index", imageIndex, `{"config":{"mediaType":"c/d"}}`, registry.Derived{}},
		{"index", imageIndex, `{"artifactType":"a/b"}`, registry.Derived{ArtifactType: "a/b"}},
		{"subject", imageIndex, `{"subject":{"digest":"` + string(subject) + `"}}`, registry.Derived{Subject: subject}},
		{"annotations", imageManifest, `{"annotations":{"a":"b"}}`, registry.Derived{Annotations: map[string]string{"a": "b"}}},
	} {
		got, err := registry.DeriveManifest(tc.mediaType, []byte(tc.raw))
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
		if got, err := registry.DeriveManifest(imageManifest, []byte(raw)); registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%s: got %+v, %v; want CodeInvalid", raw, got, err)
		}
	}
}

func FuzzDeriveManifest(f *testing.F) {
	f.Add(imageManifest, []byte(`{"artifactType":"a/b","config":{"mediaType":"c/d"},"annotations":{"a":"b"}}`))
	f.Add(imageIndex, []byte(`{"subject":{"digest":"`+string(digest.FromString("subject"))+`"}}`))
	f.Fuzz(func(t *testing.T, mediaType string, raw []byte) {
		derived, err := registry.DeriveManifest(mediaType, raw)
		if err != nil && registry.CodeOf(err) != registry.CodeInvalid {
			t.Fatalf("error %v, want CodeInvalid", err)
		}
		if err == nil && derived.Subject != "" && derived.Subject.Validate() != nil {
			t.Fatalf("subject %q is no digest", derived.Subject)
		}
	})
}
