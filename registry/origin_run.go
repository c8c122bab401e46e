package registry

import (
	"net/url"
	"strings"
)

// ClaimRun is the name under which [CIOrigin.Claimed] has the URL of the run, as variables of the job say it.
const ClaimRun = "run_url"

// maxRunURL is how long the URL of a run may be.
const maxRunURL = 512 // it is part of a reason, which has an end too

// RunURL is text if it can be the URL of a run that people follow: empty for anything else.
func RunURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxRunURL || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil ||
		PlainText(text) != text || strings.ContainsAny(text, " <>\"'`|\\()[]") {
		return ""
	}
	return text
}

// gitHubServer is the server whose jobs an issuer signs tokens for: github.com, which lets an enterprise have an issuer of its own
// below the common one, an instance with data residency, or a GitHub Enterprise Server. Empty for any other issuer.
func gitHubServer(issuer string) string {
	u, err := url.Parse(issuer)
	if err != nil || u.Scheme != "https" {
		return ""
	}
	subdomain, ok := strings.CutPrefix(u.Host, "token.actions.")
	switch {
	case u.Host == "token.actions.githubusercontent.com":
		return "https://github.com"
	case ok && u.Path == "" && strings.HasSuffix(subdomain, ".ghe.com"):
		return "https://" + subdomain
	case u.Path == "/_services/token":
		return "https://" + u.Host
	}
	return ""
}
