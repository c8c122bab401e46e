package page

import (
	"net/http"
	"net/url"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
)

// Addresses of pages. A component of a model's name begins with a letter or digit, so that "-" ends the name.
const (
	ModelsPath = "/models/"
	APIPath    = "/api/v1"
	Separator  = "/-/"
)

// SignInPath is the page on which people sign in, and see as whom they are signed in.
const SignInPath = "/signin"

// ActPath precedes the model in the address of a form with which a person decides something.
const ActPath = "/act/"

// PathOf escapes each component of a path.
func PathOf(names ...string) string {
	var parts []string
	for _, part := range strings.Split(strings.Join(names, "/"), "/") {
		parts = append(parts, url.PathEscape(part))
	}
	return strings.Join(parts, "/")
}

// WithQuery adds a query to an address; empty values are left out.
func WithQuery(address string, pairs ...string) string {
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

// ModelURL is the page of a model.
func ModelURL(model string) string { return ModelsPath + PathOf(model) }

// ModelAPI is the address of an operation of the API on a model.
func ModelAPI(model, operation string, pairs ...string) string {
	return WithQuery(APIPath+ModelsPath+PathOf(model, operation), pairs...)
}

// ReleaseURL is the page of a release. An empty environment means the last one that has it.
func ReleaseURL(model string, d registry.Digest, environment string) string {
	return api.ReleasePage("", model, d, environment)
}

// EngineURL is the page of an engine. An empty environment means the last one that has it.
func EngineURL(model string, d registry.Digest, environment string) string {
	return api.EnginePage("", model, d, environment)
}

// CompareURL is the page that compares two releases of a model.
func CompareURL(model string, a, b registry.Digest) string {
	return WithQuery(ModelURL(model)+Separator+"compare", "a", string(a), "b", string(b))
}

// PromotionURL is the page of the promotion of a model to an environment.
func PromotionURL(environment, model string) string {
	return "/environments/" + PathOf(environment) + "/promote/" + PathOf(model)
}

// PromotionAPI is the address of the check of a promotion; without a release, of the list of possible promotions.
func PromotionAPI(model, to string, release registry.Digest) string {
	if release == "" {
		return ModelAPI(model, "promotions", "environment", to)
	}
	return ModelAPI(model, "promotion-check", "environment", to, "digest", string(release))
}

// AddressOf is the address of this service: the configured one, or that at which the reader reached it.
func AddressOf(configured string, r *http.Request) string {
	if configured != "" {
		return configured
	}
	scheme := "http://"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https://"
	}
	return scheme + registry.PlainText(r.Host)
}
