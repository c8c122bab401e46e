package registry

import "strings"

// RedactURL returns the URL of a service or registry without what can be secret: user, password, query and fragment.
// Text that is no URL is treated the same, so that a mistake in a URL does not print its password.
func RedactURL(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "", text
	} else {
		scheme += "://"
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = "xxxxx@" + rest[at+1:]
	}
	if more := strings.IndexAny(rest, "?#"); more >= 0 {
		rest = rest[:more+1] + "xxxxx"
	}
	return scheme + rest
}
