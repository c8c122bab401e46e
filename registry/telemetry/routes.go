package telemetry

import "strings"

// Routes finds the pattern of a path. Make them with [NewRoutes].
type Routes struct{ patterns []pattern }

// pattern has a fixed prefix, then optionally one or more arbitrary components, then components
// that are fixed or wildcards.
type pattern struct {
	text   string
	prefix string // before the arbitrary components; the whole path if there are none
	many   bool
	suffix []string // may contain wildcards
}

// anything is a wildcard for one component that is not empty.
const anything = "{}"

// other is the route of all paths that match no pattern.
const other = "other"

// NewRoutes parses patterns such as "/v2/{name}/tags/list". {name} and {model} match one or
// more components, any other word in braces matches one. The first pattern that matches wins.
func NewRoutes(patterns ...string) Routes {
	var all Routes
	for _, text := range patterns {
		p := pattern{text: text, prefix: text}
		for _, name := range []string{"{name}", "{model}"} {
			if before, after, found := strings.Cut(text, name); found {
				p.prefix, p.many, p.suffix = before, true, components(after)
				break
			}
		}
		if before, after, found := strings.Cut(text, "{"); found && !p.many {
			p.prefix, p.suffix = before, components("/{"+after)
		}
		all.patterns = append(all.patterns, p)
	}
	return all
}

// components splits a path at its slashes.
func components(path string) []string {
	parts := strings.Split(path, "/")[1:]
	for i, part := range parts {
		if strings.HasPrefix(part, "{") {
			parts[i] = anything
		}
	}
	return parts
}

// Of returns the pattern that a path matches, or "other".
func (r Routes) Of(path string) string {
	for _, p := range r.patterns {
		if p.fits(path) {
			return p.text
		}
	}
	return other
}

func (p pattern) fits(path string) bool {
	rest, ok := strings.CutPrefix(path, p.prefix)
	if !ok || len(p.suffix) == 0 {
		return ok && (rest != "") == p.many
	}
	for i := len(p.suffix) - 1; i >= 0; i-- {
		cut := strings.LastIndexByte(rest, '/')
		last := rest[cut+1:]
		if p.suffix[i] != last && (p.suffix[i] != anything || last == "") {
			return false
		}
		if cut < 0 {
			return i == 0 && !p.many
		}
		rest = rest[:cut]
	}
	return p.many && rest != ""
}

func isUpload(route string) bool { return strings.Contains(route, "/blobs/uploads/") }

func isBlob(route string) bool { return strings.HasSuffix(route, "/blobs/{digest}") }

func isProbe(route string) bool {
	return route == "/healthz" || route == "/readyz" || route == "/metrics"
}
