package oidc

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// Config is the issuers that are trusted: the content of access.yaml.
type Config struct {
	Issuers []Issuer
}

// Issuer is somebody whose tokens are believed.
type Issuer struct {
	URL       string         // as its tokens name it, and where it is asked for its keys
	Audience  string         // that a token must be meant for
	Principal string         // name of who is let in, with {CLAIM} for the text of a claim; empty: "oidc:URL#SUBJECT"
	Roots     *x509.CertPool // that its certificate is checked against; nil: those of the system
	Rules     []Rule
}

// Rule gives grants to whoever has claims. Every rule that fits counts.
type Rule struct {
	Match  map[string]string // pattern by claim; all must fit
	Grants []registry.Grant
}

// file is access.yaml.
type file struct {
	Issuers []issuer `yaml:"issuers,required"`
}

type issuer struct {
	Issuer    string `yaml:"issuer,required"`
	Audience  string `yaml:"audience,required"`
	Principal string `yaml:"principal"`
	CA        string `yaml:"ca"`
	Rules     []rule `yaml:"rules,required"`
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

// Load reads the file at path. The path of a CA in it is relative to its folder. Errors:
// CodeNotFound without the file; CodeInvalid with line and column; CodeInternal when it
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

// Parse reads the bytes of the file at path.
func Parse(path string, data []byte) (Config, error) {
	var f file
	doc, err := strictyaml.Decode(path, data, &f)
	if err != nil {
		return Config{}, err
	}
	if len(f.Issuers) == 0 {
		doc.At("issuers").Problemf("issuers is empty: want at least one, or no file")
	}
	var c Config
	for i, written := range f.Issuers {
		p := parser{doc, i}
		read := Issuer{URL: written.Issuer, Audience: written.Audience, Principal: written.Principal}
		p.checkURL(written.Issuer)
		if slices.ContainsFunc(c.Issuers, func(o Issuer) bool { return o.URL == read.URL }) {
			p.at("issuer").Problemf("issuer %s is here twice: put all rules under one", read.URL)
		}
		if written.Audience == "" {
			p.at("audience").Problemf("audience is empty: want what tokens for this service are issued for, such as its URL")
		}
		p.checkPrincipal(written.Principal)
		if slices.ContainsFunc(c.Issuers, func(o Issuer) bool { return o.Principal != "" && prefix(o.Principal) == prefix(read.Principal) }) {
			p.at("principal").Problemf("principal %q: another issuer's names begin like that: want a prefix of its own", read.Principal)
		}
		if written.CA != "" {
			read.Roots = p.roots(filepath.Dir(path), written.CA)
		}
		read.Rules = p.rules(written)
		c.Issuers = append(c.Issuers, read)
	}
	return c, doc.Err()
}

// parser notes what is wrong with one issuer.
type parser struct {
	doc   *strictyaml.Document
	index int
}

func (p parser) at(path ...any) *strictyaml.Node {
	return p.doc.At(append([]any{"issuers", p.index}, path...)...)
}

func (p parser) checkURL(issuer string) {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Scheme != "https" && !plainLoopback(u)) {
		p.at("issuer").Problemf("issuer %q: want https://HOST[/PATH], as its tokens have it in iss", issuer)
	}
}

// plainLoopback reports whether a URL is of this machine, where there is no TLS.
func plainLoopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "http" && ip != nil && ip.IsLoopback()
}

// principalPattern is a prefix of its own, and claims in braces.
var principalPattern = regexp.MustCompile(`^[a-z][a-z0-9-]*:([^{}\x00-\x20\x7f]|\{[A-Za-z0-9_./-]+\})+$`)

// reservedPrefixes begin the names of those who are let in by something else.
var reservedPrefixes = []string{"token:", "oidc:"}

func (p parser) checkPrincipal(template string) {
	if template == "" {
		return
	}
	reserved := slices.ContainsFunc(reservedPrefixes, func(prefix string) bool { return strings.HasPrefix(template, prefix) })
	if !principalPattern.MatchString(template) || reserved {
		p.at("principal").Problemf("principal %q: want a prefix other than token and oidc, ':', and claims in braces: github:{repository}", template)
	}
}

func prefix(template string) string {
	before, _, _ := strings.Cut(template, ":")
	return before
}

func (p parser) roots(dir, name string) *x509.CertPool {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, filepath.FromSlash(name))
	}
	data, err := os.ReadFile(name)
	if err != nil {
		p.at("ca").Problemf("ca: %s", err)
		return nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(data) {
		p.at("ca").Problemf("ca %s: want certificates in PEM", name)
	}
	return roots
}

func (p parser) rules(written issuer) []Rule {
	if len(written.Rules) == 0 {
		p.at("rules").Problemf("rules is empty: want at least one, since nobody gets in without")
	}
	var rules []Rule
	for i, r := range written.Rules {
		p.checkMatch(i, written.Issuer, r.Match)
		if len(r.Grants) == 0 {
			p.at("rules", i, "grants").Problemf("grants is empty: want at least one")
		}
		read := Rule{Match: r.Match}
		for j, g := range r.Grants {
			grant := registry.Grant{Environment: g.Environment, Model: g.Model}
			for _, name := range g.Allow {
				grant.Permissions = append(grant.Permissions, registry.Permission(name))
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

func (p parser) checkMatch(i int, issuer string, match map[string]string) {
	if len(match) == 0 {
		p.at("rules", i, "match").Problemf("match is empty: it would let in everybody whom the issuer knows")
	}
	for claim, pattern := range match {
		if !registry.ValidPattern(pattern) {
			p.at("rules", i, "match", claim).Problemf("%s %q: want a text, with * for a part between slashes and a final /** for all below", claim, pattern)
		}
	}
	if owners, shared := sharedIssuers()[issuer]; shared && len(match) > 0 && !slices.ContainsFunc(owners, func(claim string) bool { return names(match[claim]) }) {
		p.at("rules", i, "match").Problemf("%s issues tokens to everybody: want one of %s without * before its first '/'", issuer, strings.Join(owners, ", "))
	}
}

// sharedIssuers are those at which anybody can get a token, with the claims that say who
// he is. A rule without one of them would let in the world.
func sharedIssuers() map[string][]string {
	return map[string][]string{
		"https://token.actions.githubusercontent.com": {"repository", "repository_id", "repository_owner", "repository_owner_id", "sub"},
		"https://gitlab.com":                          {"project_path", "project_id", "namespace_path", "namespace_id", "sub"},
		"https://accounts.google.com":                 {"email", "hd", "sub"},
	}
}

// names reports whether a pattern names at least an owner: what is before its first '/'.
func names(pattern string) bool {
	owner, _, _ := strings.Cut(pattern, "/")
	return owner != "" && !strings.ContainsAny(owner, `*?[\`)
}
