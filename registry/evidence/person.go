package evidence

import (
	"cmp"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Person is a caller of a service who signed in, as a statement of the service's attester names them.
// That it was this person is the word of the service. A person is either the subject of an issuer
// or a token of the service. The zero Person is nobody.
type Person struct {
	// Principal is the caller's name in the history: "token:jane", "oidc:ISSUER#SUBJECT".
	Principal string `json:"principal"`
	// Issuer and Subject are iss and sub of the caller's OIDC token.
	Issuer  string `json:"issuer,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Token is the name of a token of the service.
	Token string `json:"token,omitempty"`
	// Name is what the issuer calls the person, for readers. No rule compares it.
	Name string `json:"name,omitempty"`
}

// maxPersonText is the maximum size in bytes of each text of a [Person] but its principal.
const maxPersonText = 255

// Validate checks that the person is one. Errors: CodeInvalid.
func (p Person) Validate() error {
	switch {
	case p.Principal == "":
		return registry.Errorf(registry.CodeInvalid, "person: the name of the principal is missing")
	case (p.Issuer != "") != (p.Subject != "") || (p.Issuer != "") == (p.Token != ""):
		return registry.Errorf(registry.CodeInvalid, "person: want an issuer and a subject, or the name of a token")
	}
	for _, text := range []string{p.Issuer, p.Subject, p.Token, p.Name} {
		if len(text) > maxPersonText {
			return registry.Errorf(registry.CodeInvalid, "person: a text has %d bytes: want at most %d", len(text), maxPersonText)
		}
	}
	for _, text := range []string{p.Principal, p.Issuer, p.Subject, p.Token, p.Name} {
		if err := registry.ValidateText("person: a text", text); err != nil {
			return err
		}
	}
	return nil
}

// Is reports whether both are the same person: the same subject of the same issuer, or the same token.
func (p Person) Is(other Person) bool {
	return p.Issuer == other.Issuer && p.Subject == other.Subject && p.Token == other.Token
}

// MayBe reports whether both can be the same caller: [Person.Is] says so, or the names of their
// principals do. An issuer's name template can give one person two names, and one name to two people.
func (p Person) MayBe(other Person) bool {
	known := p.Token != "" || p.Issuer != ""
	return known && p.Is(other) || p.Principal != "" && p.Principal == other.Principal
}

// Key identifies the person among all signers. Texts of a valid person have no newline.
func (p Person) Key() string {
	return strings.Join([]string{"person", p.Issuer, p.Subject, p.Token}, "\n")
}

// String names the person: "token jane", "Jane Doe (248289 of https://id.example.com)".
func (p Person) String() string {
	if p.Token != "" {
		return "token " + p.Token
	}
	return cmp.Or(p.Name, "subject") + " (" + p.Subject + " of " + p.Issuer + ")"
}
