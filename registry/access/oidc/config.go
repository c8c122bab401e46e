package oidc

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// Config is the content of access.yaml: the trusted issuers and their rules.
type Config struct {
	Issuers []Issuer
	Digest  registry.Digest // covers the file and the certificates that it names
}

// Issuer is a trusted issuer of tokens.
type Issuer struct {
	URL       string          // the iss of its tokens, and where its keys are fetched
	Audience  string          // the aud that a token must have
	Principal string          // name of a caller, with {CLAIM} for the text of a claim; empty: "oidc:URL#SUBJECT"
	Roots     *x509.CertPool  // CAs for its certificate; nil: those of the system
	CA        registry.Digest // of the file of Roots; empty without Roots
	Rules     []Rule
	SignIn    *SignIn // nil: people do not sign in there with a browser
}

// Rule gives grants to callers with matching claims. All matching rules apply.
type Rule struct {
	Match  map[string]string // pattern by claim; all must match
	Grants []storage.Grant
}

// file is access.yaml.
type file struct {
	Issuers []issuer `yaml:"issuers,required"`
}

type issuer struct {
	Issuer    string  `yaml:"issuer,required"`
	Audience  string  `yaml:"audience,required"`
	Principal string  `yaml:"principal"`
	CA        string  `yaml:"ca"`
	Rules     []rule  `yaml:"rules,required"`
	SignIn    *signIn `yaml:"signIn"`
}

type signIn struct {
	Name       string   `yaml:"name,required"`
	Client     string   `yaml:"client,required"`
	SecretFile string   `yaml:"secretFile"`
	Scopes     []string `yaml:"scopes"`
}

type rule struct {
	Match  map[string]string `yaml:"match,required"`
	Grants []grant           `yaml:"grants,required"`
}

type grant struct {
	Allow       []string `yaml:"allow,required"`
	Environment string   `yaml:"environment,required"`
	Model       string   `yaml:"model,required"`
}

// Load reads the file at path. CA paths in the file are relative to its folder. Errors:
// CodeNotFound if the file does not exist; CodeInvalid with line and column; CodeInternal if it
// cannot be read.
func Load(path string) (Config, error) {
	data, err := strictyaml.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Config{}, registry.Errorf(registry.CodeNotFound, "%s: no such file", path)
	case err != nil && !registry.HasCode(err, registry.CodeInvalid):
		return Config{}, registry.Errorf(registry.CodeInternal, "read %s: %w", path, err)
	case err != nil:
		return Config{}, err
	}
	return Parse(path, data)
}

// Parse parses the content of the file at path.
func Parse(path string, data []byte) (Config, error) {
	var f file
	doc, err := strictyaml.Decode(path, data, &f)
	if err != nil {
		return Config{}, err
	}
	if len(f.Issuers) == 0 {
		doc.At("issuers").Problemf("issuers is empty: want at least one, or delete the file")
	}
	var c Config
	read := []registry.Digest{digest.FromBytes(data)}
	for i, written := range f.Issuers {
		p := parser{doc, i}
		issuer := Issuer{URL: written.Issuer, Audience: written.Audience, Principal: written.Principal}
		p.checkURL(written.Issuer)
		if slices.ContainsFunc(c.Issuers, func(o Issuer) bool { return o.URL == issuer.URL }) {
			p.at("issuer").Problemf("issuer %s is here twice: put all its rules under one entry", issuer.URL)
		}
		if written.Audience == "" {
			p.at("audience").Problemf("audience is empty: want the aud of tokens for this service, such as its URL")
		}
		p.checkPrincipal(written.Principal)
		if slices.ContainsFunc(
			c.Issuers,
			func(o Issuer) bool { return o.Principal != "" && prefix(o.Principal) == prefix(issuer.Principal) },
		) {
			p.at("principal").
				Problemf("principal %q: names of another issuer begin the same way: want a unique prefix", issuer.Principal)
		}
		if written.CA != "" {
			issuer.Roots, issuer.CA = p.roots(filepath.Dir(path), written.CA)
			read = append(read, issuer.CA)
		}
		issuer.Rules = p.rules(written)
		issuer.SignIn = p.signIn(filepath.Dir(path), written.SignIn)
		if issuer.SignIn != nil && slices.ContainsFunc(c.Ways(), func(w Way) bool { return w.Name == issuer.SignIn.Name }) {
			p.at("signIn", "name").Problemf("name %q: another issuer has it: want a unique name", issuer.SignIn.Name)
		}
		c.Issuers = append(c.Issuers, issuer)
	}
	if err := doc.Err(); err != nil {
		return Config{}, err
	}
	c.Digest, err = registry.CanonicalDigest(read)
	return c, err
}

// parser reports the problems of one issuer.
type parser struct {
	doc   *strictyaml.Document
	index int
}

func (p parser) at(path ...any) *strictyaml.Node {
	return p.doc.At(append([]any{"issuers", p.index}, path...)...)
}

func (p parser) checkURL(issuer string) {
	if !registry.IsIssuerURL(issuer) {
		p.at("issuer").Problemf("issuer %q: want https://HOST[/PATH], as its tokens have it in iss", issuer)
	}
}

// principalPattern is a prefix and claims in braces.
var principalPattern = regexp.MustCompile(`^[a-z][a-z0-9-]*:([^{}\x00-\x20\x7f]|\{[A-Za-z0-9_./-]+\})+$`)

// reservedPrefixes are the prefixes of principals that authenticate in another way.
var reservedPrefixes = []string{"token:", "oidc:"}

func (p parser) checkPrincipal(template string) {
	if template == "" {
		return
	}
	reserved := slices.ContainsFunc(reservedPrefixes,
		func(prefix string) bool { return strings.HasPrefix(template, prefix) })
	if !principalPattern.MatchString(template) || reserved {
		p.at("principal").
			Problemf("principal %q: want a prefix other than token and oidc, ':', and claims in braces: "+
				"github:{repository}", template)
	}
}

func prefix(template string) string {
	before, _, _ := strings.Cut(template, ":")
	return before
}

// roots reads the certificates in a file and returns them with the digest of the file.
func (p parser) roots(dir, name string) (*x509.CertPool, registry.Digest) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, filepath.FromSlash(name))
	}
	data, err := os.ReadFile(name)
	if err != nil {
		p.at("ca").Problemf("ca: %s", err)
		return nil, ""
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(data) {
		p.at("ca").Problemf("ca %s: want certificates in PEM", name)
	}
	return roots, digest.FromBytes(data)
}

func (p parser) rules(written issuer) []Rule {
	if len(written.Rules) == 0 {
		p.at("rules").Problemf("rules is empty: want at least one, because rules admit callers")
	}
	var rules []Rule
	for i, r := range written.Rules {
		p.checkMatch(i, written.Issuer, r.Match)
		if len(r.Grants) == 0 {
			p.at("rules", i, "grants").Problemf("grants is empty: want at least one")
		}
		read := Rule{Match: r.Match}
		for j, g := range r.Grants {
			grant := storage.Grant{Environment: g.Environment, Model: g.Model}
			for _, name := range g.Allow {
				grant.Permissions = append(grant.Permissions, storage.Permission(name))
			}
			if err := grant.Validate(); err != nil {
				p.at("rules", i, "grants", j).Problemf("%s", err)
			}
			read.Grants = append(read.Grants, grant)
		}
		rules = append(rules, read)
	}
	return rules
}

// wayName is a part of a URL.
var wayName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// scopeText is a scope-token of https://www.rfc-editor.org/rfc/rfc6749#section-3.3.
var scopeText = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]+$`)

func (p parser) signIn(dir string, written *signIn) *SignIn {
	if written == nil {
		return nil
	}
	if !wayName.MatchString(written.Name) {
		p.at("signIn", "name").Problemf("name %q: want up to 32 lower-case letters, digits and '-'", written.Name)
	}
	if written.Client == "" {
		p.at("signIn", "client").Problemf("client is empty: want the client ID that the issuer gave this service")
	}
	for n, scope := range written.Scopes {
		if !scopeText.MatchString(scope) {
			p.at("signIn", "scopes", n).Problemf("scope %q: want a name without spaces, such as email", scope)
		}
	}
	s := &SignIn{Name: written.Name, Client: written.Client, SecretFile: written.SecretFile, Scopes: written.Scopes}
	if s.SecretFile != "" && !filepath.IsAbs(s.SecretFile) {
		s.SecretFile = filepath.Join(dir, filepath.FromSlash(s.SecretFile))
	}
	return s
}

func (p parser) checkMatch(i int, issuer string, match map[string]string) {
	if len(match) == 0 {
		p.at("rules", i, "match").Problemf("match is empty: it would admit every user of the issuer")
	}
	for claim, pattern := range match {
		if !storage.ValidPattern(pattern) {
			p.at("rules", i, "match", claim).
				Problemf("%s %q: want a text, with * for a part between slashes and a final /** for all below", claim, pattern)
		}
	}
	if s, ok := registry.FindSharedIssuer(issuer); ok && len(match) > 0 && !namesOwner(s, match) {
		p.at("rules", i, "match").
			Problemf("anyone can get a token from %s, so the rule must name an owner: add %s", issuer, s.Example)
	}
}

// SignIn lets people sign in at an issuer with a browser.
type SignIn struct {
	Name       string   // in the URL of the service to which the issuer sends people back
	Client     string   // the ID that the issuer gave this service; the aud of its ID tokens
	SecretFile string   // has the secret of the client; empty for a public client
	Scopes     []string // beside openid
}

// Way is an issuer at which people can sign in.
type Way struct {
	Name   string
	Issuer string // its URL
}

// Ways lists the issuers at which people can sign in, in the order of the file.
func (c Config) Ways() []Way {
	var all []Way
	for _, i := range c.Issuers {
		if i.SignIn != nil {
			all = append(all, Way{Name: i.SignIn.Name, Issuer: i.URL})
		}
	}
	return all
}
