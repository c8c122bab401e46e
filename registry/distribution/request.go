package distribution

import (
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// request is a parsed URL path.
type request struct {
	endpoint   endpoint
	repository string
	last       string // digest, tag or upload identifier; not validated yet
}

// endpoint is a kind of path.
type endpoint string

const (
	nothing   endpoint = ""
	base      endpoint = "base"
	catalog   endpoint = "catalog"
	blobs     endpoint = "blobs"
	uploads   endpoint = "uploads" // where uploads begin
	upload    endpoint = "upload"  // one of them
	manifests endpoint = "manifests"
	tags      endpoint = "tags"
	referrers endpoint = "referrers"
)

// parse parses a path from the right, because components of a repository can have the names of
// endpoints. Only the last two or three components select the endpoint.
func parse(path string) request {
	if path == "/v2" || path == "/v2/" {
		return request{endpoint: base}
	}
	if path == "/v2/_catalog" { // which no repository can be called
		return request{endpoint: catalog}
	}
	path, ok := strings.CutPrefix(path, "/v2/")
	if !ok {
		return request{}
	}
	rest, last := cutLast(path)
	repository, kind := cutLast(rest)
	if kind == "uploads" {
		if above, parent := cutLast(repository); parent == "blobs" {
			if last == "" {
				return request{uploads, above, ""}
			}
			return request{upload, above, last}
		}
	}
	switch {
	case kind == "blobs" && last == "uploads":
		return request{uploads, repository, ""}
	case kind == "blobs", kind == "manifests", kind == "referrers":
		return request{endpoint(kind), repository, last}
	case kind == "tags" && last == "list":
		return request{tags, repository, ""}
	}
	return request{}
}

// cutLast splits a path before its last component. before is empty for a path of one component.
func cutLast(path string) (before, last string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

func isRepository(name string) bool {
	return registry.ValidRepository(name)
}

// parseDigest parses a digest with a supported algorithm.
func parseDigest(s string) (registry.Digest, error) {
	d := registry.Digest(s)
	if err := registry.ValidDigest(d); err != nil {
		return "", problemf(400, codeDigestInvalid, "digest %q: %w", s, err)
	}
	if a := d.Algorithm(); a != digest.SHA256 && a != digest.SHA512 {
		return "", problemf(400, codeDigestInvalid, "digest %q: want sha256 or sha512", s)
	}
	return d, nil
}

// isDigest reports whether a reference to a manifest is a digest: tags have no colon.
func isDigest(reference string) bool { return strings.Contains(reference, ":") }
