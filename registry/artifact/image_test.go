package artifact_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// many is a release of so many engines with image forms.
func many(n int) artifact.Release {
	r := artifact.Release{Digest: digest.FromString("release")}
	for i := range n {
		name := strconv.Itoa(i)
		r.Engines = append(r.Engines, artifact.Engine{Digest: digest.FromString("engine " + name), Target: artifact.Target{Name: name}, Variant: "fp32",
			Image: artifact.Image{Digest: digest.FromString("image " + name), Size: int64(i)}})
	}
	return r
}

// A statement can name a release of the largest size with all engines and image forms.
func TestMaxEngines(t *testing.T) {
	t.Parallel()
	if err := artifact.CheckEngines(artifact.MaxEngines); err != nil {
		t.Error(err)
	}
	err := artifact.CheckEngines(artifact.MaxEngines + 1)
	if !registry.HasCode(err, registry.CodeInvalid) || len(registry.Hints(err)) != 1 {
		t.Errorf("one engine too many: error %v, want CodeInvalid with what to do", err)
	}
	if n := len(many(artifact.MaxEngines).Subjects()); n > artifact.MaxSubjects || n+2 <= artifact.MaxSubjects {
		t.Errorf("the largest release has %d subjects, and a statement at most %d", n, artifact.MaxSubjects)
	}
}

func TestSubjectsOfRelease(t *testing.T) {
	t.Parallel()
	r := many(2)
	r.Engines[1].Image = artifact.Image{}
	var names []string
	for _, s := range r.Subjects() {
		names = append(names, s.Name)
		if found, ok := r.Subject(s.Digest); !ok || found != s {
			t.Errorf("%s is found as %+v", s.Name, found)
		}
	}
	if want := []string{"release", "0/fp32", "1/fp32", "0/fp32 (image)"}; !slices.Equal(names, want) {
		t.Errorf("subjects %q, want %q", names, want)
	}
	for _, d := range []registry.Digest{"", digest.FromString("image 1")} {
		if s, ok := r.Subject(d); ok {
			t.Errorf("%q is the subject %+v", d, s)
		}
	}
}
