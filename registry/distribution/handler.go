package distribution

import (
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/lru"
)

// handler is Config with its defaults filled in.
type handler struct {
	Config
	routes    map[endpoint]map[string]route
	manifests *lru.Cache[registry.Digest, []byte]
	// sightings has the versions of content that matched their digest when last hashed.
	sightings *lru.Cache[registry.Digest, sighting]
	// largeLists limits the large lists in memory.
	largeLists chan struct{}
}

// route has the handler of one method of an endpoint and its required permission.
type route struct {
	action Action
	serve  func(h *handler, w http.ResponseWriter, r *http.Request, at request) error
}

// sighting is a version of content that matched its digest.
type sighting struct {
	version string
	until   time.Time
}
