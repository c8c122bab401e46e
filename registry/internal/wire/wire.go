// Package wire is the REST shapes of the registry: paths, bodies and problems. Only
// registry/server and registry/client import it, so that the two cannot drift apart.
package wire

import (
	"net/url"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// The paths of the API. Those of a model are ModelsPath + the model's name + one of
// the operations; a name may have slashes, so they are read from the right.
const (
	Prefix           = "/api/v1"
	EnvironmentsPath = Prefix + "/environments"
	HeadsPath        = Prefix + "/heads"
	HistoryPath      = Prefix + "/history"
	ModelsPath       = Prefix + "/models/"

	OpResolve      = "resolve"
	OpReleases     = "releases" // releases/{tag or digest}
	OpClaims       = "claims"   // releases/{tag or digest}/claims
	OpPublications = "publications"
	OpEvidence     = "evidence"
	OpPromotions   = "promotions"
	OpRollbacks    = "rollbacks"
	OpHoldReleases = "hold-releases"
)

// MaxBody bounds a request or response body. A bundle is at most 4 MiB, and base64
// makes it a third longer.
const MaxBody = 8 << 20

// ModelPath is the path of an operation on a model.
func ModelPath(model string, operation ...string) string {
	escaped := make([]string, 0, len(operation)+1)
	for _, component := range strings.Split(model, "/") {
		escaped = append(escaped, url.PathEscape(component))
	}
	for _, o := range operation {
		escaped = append(escaped, url.PathEscape(o))
	}
	return ModelsPath + strings.Join(escaped, "/")
}

// ModelRequest is what a path below ModelsPath asks for.
type ModelRequest struct {
	Model     string
	Operation string
	Argument  string // releases and claims: tag or digest
}

// ParseModelPath reads a path below ModelsPath, which is already unescaped. Errors:
// CodeNotFound.
func ParseModelPath(path string) (ModelRequest, error) {
	rest := strings.TrimPrefix(path, ModelsPath)
	parts := strings.Split(rest, "/")
	n := len(parts)
	var r ModelRequest
	switch {
	case n >= 4 && parts[n-3] == OpReleases && parts[n-1] == OpClaims:
		r = ModelRequest{strings.Join(parts[:n-3], "/"), OpClaims, parts[n-2]}
	case n >= 3 && parts[n-2] == OpReleases:
		r = ModelRequest{strings.Join(parts[:n-2], "/"), OpReleases, parts[n-1]}
	case n >= 2:
		r = ModelRequest{Model: strings.Join(parts[:n-1], "/"), Operation: parts[n-1]}
	}
	if registry.ValidateModel(r.Model) != nil {
		return ModelRequest{}, registry.Errorf(registry.CodeNotFound, "no resource %s", path)
	}
	return r, nil
}
