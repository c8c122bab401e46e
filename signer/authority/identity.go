package authority

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore-go/pkg/sign"

	"mlpromote.dev/mlpromote/registry"
)

// Extension ends the name of a file that describes how a role signs as an identity.
const Extension = ".identity"

// Identity configures signing with certificates for an identity.
type Identity struct {
	// Fulcio is the address of the certificate authority: its signing API, version 2.
	Fulcio string `yaml:"fulcio,required"`
	// Token is where the OIDC token comes from: github, variable:NAME or file:/PATH.
	Token string `yaml:"token,required"`
	// Audience is whom the token is for; sigstore without one.
	Audience string `yaml:"audience"`
	// Rekor is the address of a log in which every signature is entered, by its API of version 1; none
	// without one.
	Rekor string `yaml:"rekor"`
}

// LoadIdentity reads a file. Errors: as [LoadTimestamps].
func LoadIdentity(path string) (Identity, error) {
	var i Identity
	if err := load(path, &i); err != nil {
		return Identity{}, err
	}
	if err := i.Validate(); err != nil {
		return Identity{}, registry.Errorf(registry.CodeInvalid, "%s: %w", filepath.Base(path), err)
	}
	return i, nil
}

// Validate checks addresses and the source of the token. Errors: CodeInvalid.
func (i Identity) Validate() error {
	err := checkSource(i.Token)
	if err == nil {
		if err = checkURL(i.Fulcio, true); err != nil {
			err = fmt.Errorf("fulcio: %w", err)
		}
	}
	if err == nil && i.Rekor != "" {
		if err = checkURL(i.Rekor, false); err != nil {
			err = fmt.Errorf("rekor: %w", err)
		}
	}
	if err == nil && (len(i.Audience) > 200 || strings.ContainsAny(i.Audience, "\n\r")) {
		err = fmt.Errorf("audience %.80q: want one line", i.Audience)
	}
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "%w", err)
	}
	return nil
}

// Text is the file.
func (i Identity) Text() string {
	var b strings.Builder
	b.WriteString("# This role signs with certificates for the identity that the token names.\n")
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %q\n", key, value)
		}
	}
	line("fulcio", i.Fulcio)
	line("token", i.Token)
	line("audience", i.Audience)
	line("rekor", i.Rekor)
	return b.String()
}

// CheckDated checks that signatures get a time from an authority or a log. Without one a
// certificate of ten minutes is worth nothing. Errors: CodeInvalid.
func (i Identity) CheckDated(stamps Timestamps) error {
	if stamps.URL != "" || i.Rekor != "" {
		return nil
	}
	return registry.WithHint(registry.Errorf(registry.CodeInvalid,
		"the certificates of an identity are valid for minutes, and nothing would show that a signature was made then"),
		"name an authority for timestamps: mlpromote key timestamps URL")
}

// logs are the logs in which a signature is entered.
func (i Identity) logs() []sign.Transparency {
	if i.Rekor == "" {
		return nil
	}
	address := strings.TrimSuffix(i.Rekor, "/")
	return []sign.Transparency{entered{sign.NewRekor(&sign.RekorOptions{BaseURL: address, Timeout: callTime, Version: 1}), address}}
}

// entered gives errors of a log a code. The library's do not say which would go away.
type entered struct {
	log     sign.Transparency
	address string
}

// GetTransparencyLogEntry enters the signature of a bundle.
func (e entered) GetTransparencyLogEntry(ctx context.Context, material []byte, b *protobundle.Bundle) error {
	err := e.log.GetTransparencyLogEntry(ctx, material, b)
	if err == nil {
		return nil
	}
	u, _ := url.Parse(e.address)
	return registry.Errorf(registry.CodeUnavailable, "log of signatures %s: %w", u.Host, err)
}
