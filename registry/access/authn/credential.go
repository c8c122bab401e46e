package authn

import (
	"encoding/base64"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// maxCredential limits the size of the header. JWTs of issuers have a few KiB.
const maxCredential = 16 << 10

// credential returns the secret of the Authorization headers of a request: a bearer token, or
// the password of any user. Errors: CodeUnauthenticated.
func credential(headers []string) (string, error) {
	switch {
	case len(headers) == 0:
		return "", registry.Errorf(registry.CodeUnauthenticated, "a token is required, but none was sent")
	case len(headers) > 1:
		return "", registry.Errorf(registry.CodeUnauthenticated, "the request has %d Authorization headers: want one",
			len(headers))
	case len(headers[0]) > maxCredential:
		return "", registry.Errorf(registry.CodeUnauthenticated,
			"the Authorization header has %d bytes: want at most %d", len(headers[0]), maxCredential)
	}
	scheme, value, _ := strings.Cut(headers[0], " ")
	value = strings.Trim(value, " ")
	switch {
	case strings.EqualFold(scheme, "Bearer") && value != "":
		return value, nil
	case strings.EqualFold(scheme, "Basic"):
		return password(value)
	}
	return "", registry.Errorf(registry.CodeUnauthenticated,
		"the Authorization header is neither Bearer TOKEN nor Basic with a token as password")
}

// password returns the password of a basic credential. The user name is ignored.
func password(encoded string) (string, error) {
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	_, secret, ok := strings.Cut(string(decoded), ":")
	if err != nil || !ok || secret == "" {
		return "", registry.Errorf(registry.CodeUnauthenticated,
			"the Authorization header is Basic without a password: want a token as password, with any user name")
	}
	return secret, nil
}
