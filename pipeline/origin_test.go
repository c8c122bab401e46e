package pipeline_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// What was read of the repository and the CI is in the provenance of every engine: as SLSA writes a commit, and whole.
func TestProvenanceOfOrigin(t *testing.T) {
	t.Parallel()
	w := setupReal(t, 1.5)
	commit := strings.Repeat("a", 40)
	var used []string
	w.p.Origin = func(_ context.Context, file string, files []string) (*evidence.Origin, error) {
		used = append(files, file)
		return &evidence.Origin{
			Git: evidence.GitOrigin{Commit: commit, Repository: "https://example.com/models.git", Ref: "refs/heads/main", State: evidence.GitDirty, ChangedCount: 1},
			CI:  &evidence.CIOrigin{Issuer: "https://gitlab.com", Claims: map[string]string{"project_path": "team/models", "job_id": "7"}},
		}, nil
	}
	result := w.built(t, digits, build.Options{})
	for _, want := range []string{"mlpromote.yaml", "model.onnx"} {
		if !slices.ContainsFunc(used, func(path string) bool { return filepath.Base(path) == want && filepath.IsAbs(path) }) {
			t.Errorf("the files that the spec uses are %q, want %s among them", used, want)
		}
	}
	claims, _, err := w.Claims(t.Context(), "staging", result.Release)
	if err != nil {
		t.Fatal(err)
	}
	provenance, ofRelease := 0, 0
	for _, c := range claims {
		var p build.Provenance
		if c.Statement.PredicateType != evidence.PredicateProvenance {
			continue
		}
		if err := registry.DecodeSigned(c.Statement.Predicate, &p); err != nil {
			t.Fatal(err)
		}
		provenance++
		if got, want := c.Statement.Origin().String(),
			"commit "+commit+" of https://example.com/models.git with 1 changed file; https://gitlab.com/team/models/-/jobs/7"; got != want {
			t.Errorf("got origin %q, want %q", got, want)
		}
		if got, want := p.RunDetails.Metadata.InvocationID, "https://gitlab.com/team/models/-/jobs/7"; got != want {
			t.Errorf("got invocation %q, want %q", got, want)
		}
		named := make(map[string]run.Resource)
		for _, d := range p.BuildDefinition.ResolvedDependencies {
			if len(d.Digest) == 0 {
				t.Errorf("dependency %s has no digest", d.Name)
			}
			named[strings.Split(d.Name, " ")[0]] = d
		}
		if c.Subject == result.Release.Digest {
			ofRelease++
		}
		for _, want := range []string{"source", "sources", "limits", "interface", "cases", "repository"} {
			if _, ok := named[want]; !ok {
				t.Errorf("provenance names no %s among %v", want, p.BuildDefinition.ResolvedDependencies)
			}
		}
		if got := named["repository"]; got.URI != "git+https://example.com/models.git" ||
			got.Digest["gitCommit"] != commit || got.Annotations["state"] != "dirty" {
			t.Errorf("got repository %+v, want the URI, the commit and that it is dirty", got)
		}
	}
	if provenance != len(result.Release.Engines)+1 || ofRelease != 1 {
		t.Errorf("got %d statements of provenance, want one for the release and one for each of %d engines", provenance, len(result.Release.Engines))
	}
}

// A token that is not valid ends a build before it makes anything.
func TestBuildRefusesOrigin(t *testing.T) {
	t.Parallel()
	w := setupReal(t, 1.5)
	refused := errors.New("the token is not valid")
	w.p.Origin = func(context.Context, string, []string) (*evidence.Origin, error) { return nil, refused }
	result, err := build.Build(t.Context(), w.p, w.spec(t, digits), build.Options{})
	if !errors.Is(err, refused) || result.Release.Digest != "" {
		t.Errorf("got release %q and error %v, want the error alone", result.Release.Digest, err)
	}
}
