package cistep

import (
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// tekton is a task of Tekton: each output is a file in the folder of results.
// Source: https://tekton.dev/docs/pipelines/tasks/#emitting-results.
type tekton struct {
	generic
	folder string
}

// outputs is the file of the result that every step has.
func (k tekton) outputs() string { return filepath.Join(k.folder, "release-digest") }

// maxResults is how many bytes results may have. All results of a task are one message of 4 KiB, with names and quotes.
const maxResults = 3 << 10

// encode adds the object by which Tekton Chains finds what a task made. Only what a service has, has a URI.
// Source: https://tekton.dev/docs/chains/slsa-provenance/#type-hinting.
func (k tekton) encode(names []string, values map[string]string) (map[string]string, error) {
	size := 0
	for _, name := range names {
		size += len(values[name])
	}
	if size > maxResults {
		names = withoutLists(names, values)
	}
	files := make(map[string]string)
	for _, name := range names {
		files[filepath.Join(k.folder, name)] = oneLine(values[name])
	}
	_, host, served := strings.Cut(k.getenv("MLPROMOTE_REGISTRY"), "://")
	ref, err := registry.ParseRef(values["ref"])
	if err == nil && served && values["release-digest"] != "" {
		made := "false" // a release that was there before: Chains states no provenance of it
		if step := k.getenv("MLPROMOTE_STEP"); step == "build" || step == "assemble" {
			made = "true"
		}
		uri := strings.TrimSuffix(host, "/") + "/" + ref.Repository()
		files[filepath.Join(k.folder, "release_ARTIFACT_OUTPUTS")] = object(map[string]string{
			"uri": uri, "digest": values["release-digest"], "isBuildArtifact": made,
		})
	}
	return files, nil
}
