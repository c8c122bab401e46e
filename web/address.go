package web

import (
	"net/http"
	"net/url"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
)

// Addresses of pages. A component of a model's name begins with a letter or digit, so that "-" ends the name.
const (
	modelsPath = "/models/"
	apiPath    = "/api/v1"
	separator  = "/-/"
)

// SignInPath is the page on which people sign in, and see as whom they are signed in.
const SignInPath = "/signin"

// actPath precedes the model in the address of a form with which a person decides something.
const actPath = "/act/"

// pathOf escapes each component of a path.
func pathOf(names ...string) string {
	var parts []string
	for _, part := range strings.Split(strings.Join(names, "/"), "/") {
		parts = append(parts, url.PathEscape(part))
	}
	return strings.Join(parts, "/")
}

// withQuery adds a query to an address; empty values are left out.
func withQuery(address string, pairs ...string) string {
	q := make(url.Values)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return address
	}
	return address + "?" + q.Encode()
}

func modelURL(model string) string { return modelsPath + pathOf(model) }

// modelAPI is the address of an operation of the API on a model.
func modelAPI(model, operation string, pairs ...string) string {
	return withQuery(apiPath+modelsPath+pathOf(model, operation), pairs...)
}

func releaseURL(model string, d registry.Digest, environment string) string {
	return api.ReleasePage("", model, d, environment)
}

func engineURL(model string, d registry.Digest, environment string) string {
	return api.EnginePage("", model, d, environment)
}

// compareURL is the page that compares two releases of a model.
func compareURL(model string, a, b registry.Digest) string {
	return withQuery(modelURL(model)+separator+"compare", "a", string(a), "b", string(b))
}

func promotionURL(environment, model string) string {
	return "/environments/" + pathOf(environment) + "/promote/" + pathOf(model)
}

// promotionAPI is where the API says whether a release may be promoted; without a release, which there are.
func promotionAPI(model, to string, release registry.Digest) string {
	if release == "" {
		return modelAPI(model, "promotions", "environment", to)
	}
	return modelAPI(model, "promotion-check", "environment", to, "digest", string(release))
}

// addressOf is the address of this service: the configured one, or that at which the reader reached it.
func addressOf(configured string, r *http.Request) string {
	if configured != "" {
		return configured
	}
	scheme := "http://"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https://"
	}
	return scheme + registry.PlainText(r.Host)
}
