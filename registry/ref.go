package registry

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/opencontainers/go-digest"
)

// ValidateRegistry checks the name of a registry. Errors: CodeInvalid.
func ValidateRegistry(name string) error {
	if !NamePattern.MatchString(name) {
		return Errorf(CodeInvalid, "registry %.200q: want a lower-case name", name)
	}
	return nil
}

// ResourceScheme begins every resource URI.
const ResourceScheme = "oci://"

// Digest is a content digest, "sha256:<hex>".
type Digest = digest.Digest

// Ref names a release or a part of one: [HOST/]ENV/MODEL[:TAG][@DIGEST].
type Ref struct {
	Host        string // registry host with port; empty for the local directory
	Environment string // one path component
	Model       string // the rest of the repository, for example "vision/digits"
	Tag         string
	Digest      Digest
}

var (
	// NamePattern is the OCI distribution 1.1 repository grammar.
	NamePattern = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	// hostPattern is a host name, an IPv4 address or an IPv6 address in brackets, with or without a port.
	hostPattern = regexp.MustCompile(`^([a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?$`)
	// VersionPattern is SemVer 2.0.0 without build metadata.
	VersionPattern = regexp.MustCompile(
		`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?$`,
	)
	// RevisionPattern is the suffix of the tags of later revisions of a version.
	RevisionPattern = regexp.MustCompile(`-r\d+$`)
)

// SourcesComponent is the last component of the repository that holds a model's sources.
const SourcesComponent = "sources"

// MaxNameLength is the maximum length of host and repository that clients support.
const MaxNameLength = 255

// ParseRef parses a ref. The first component is a host only if it contains '.' or
// ':' or is "localhost", as in refs of container images. There is no default host. Errors:
// CodeInvalid, naming the part that is wrong.
func ParseRef(s string) (Ref, error) {
	var ref Ref
	rest := s
	if at := strings.IndexByte(rest, '@'); at >= 0 {
		ref.Digest = Digest(rest[at+1:])
		if err := ref.Digest.Validate(); err != nil {
			return Ref{}, Errorf(CodeInvalid, "ref %q: digest %q: %w", s, rest[at+1:], err)
		}
		rest = rest[:at]
	}
	if slash := strings.IndexByte(rest, '/'); slash > 0 && IsHost(rest[:slash]) {
		ref.Host, rest = rest[:slash], rest[slash+1:]
		if !hostPattern.MatchString(ref.Host) {
			return Ref{}, Errorf(CodeInvalid,
				"ref %q: host %q: want a host name or address, optionally with ':' and a port", s, ref.Host)
		}
	}
	if colon := strings.LastIndexByte(rest, ':'); colon >= 0 {
		ref.Tag, rest = rest[colon+1:], rest[:colon]
		if !ValidTag(ref.Tag) {
			return Ref{}, Errorf(CodeInvalid,
				"ref %q: tag %q: want up to 128 letters, digits, '.', '_' or '-'", s, ref.Tag)
		}
	}
	environment, model, ok := strings.Cut(rest, "/")
	if !ok {
		return Ref{}, Errorf(CodeInvalid,
			"ref %q: want [HOST/]ENVIRONMENT/MODEL[:TAG][@DIGEST], for example staging/vision/digits:1.0.0", s)
	}
	ref.Environment, ref.Model = environment, model
	if !NamePattern.MatchString(environment) {
		return Ref{}, Errorf(CodeInvalid, "ref %q: environment %q is not a lower-case name", s, environment)
	}
	if err := ValidateModel(model); err != nil {
		return Ref{}, Errorf(CodeInvalid, "ref %q: %w", s, err)
	}
	return ref, nil
}

// ValidRepository reports whether name is a repository name by the grammar of OCI distribution
// 1.1, and not longer than clients support.
func ValidRepository(name string) bool {
	return len(name) <= MaxNameLength && NamePattern.MatchString(name)
}

// maxTagLength is the limit of OCI distribution 1.1.
const maxTagLength = 128

// ValidTag reports whether tag is valid by the grammar of OCI distribution 1.1: up to 128
// letters, digits, '.', '_' and '-', and neither '.' nor '-' first.
func ValidTag(tag string) bool {
	for i, c := range []byte(tag) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
		if !letter && (i == 0 || c != '.' && c != '-') {
			return false
		}
	}
	return tag != "" && len(tag) <= maxTagLength
}

// IsHost reports whether the first component of a ref names a registry, as opposed to a part of the model's name:
// whether it has a '.' or a port, or is localhost.
func IsHost(component string) bool {
	return component == "localhost" || strings.ContainsAny(component, ".:")
}

// ValidateHost checks that refs can begin with the host: HOST[:PORT]. Errors:
// CodeInvalid.
func ValidateHost(host string) error {
	if !IsHost(host) || !hostPattern.MatchString(host) || len(host) > MaxNameLength {
		return Errorf(
			CodeInvalid,
			"registry %q: want HOST[:PORT] as at the start of refs, with a '.' or a port, no scheme and no path: "+
				"registry.example.com",
			host,
		)
	}
	return nil
}

// Repository returns the repository of the ref without its host: ENV/MODEL.
func (r Ref) Repository() string { return Repository(r.Environment, r.Model) }

// String formats the ref as [ParseRef] reads it.
func (r Ref) String() string {
	var b strings.Builder
	if r.Host != "" {
		b.WriteString(r.Host + "/")
	}
	b.WriteString(r.Repository())
	if r.Tag != "" {
		b.WriteString(":" + r.Tag)
	}
	if r.Digest != "" {
		fmt.Fprintf(&b, "@%s", r.Digest)
	}
	return b.String()
}

// Repository returns the repository of a model in an environment.
func Repository(environment, model string) string { return environment + "/" + model }

// SourcesRepository returns the repository of a model's sources, in the first environment.
func SourcesRepository(environment, model string) string {
	return Repository(environment, model) + "/" + SourcesComponent
}

// ValidateModel checks a model's name: the OCI repository grammar, and a last
// component other than "sources". Errors: CodeInvalid.
func ValidateModel(name string) error {
	if !NamePattern.MatchString(name) || len(name) > MaxNameLength {
		return Errorf(
			CodeInvalid,
			"model name %q: want lower-case letters and digits in components separated by '/', inner '.', '_' or '-', at "+
				"most %d characters",
			name,
			MaxNameLength,
		)
	}
	if name == SourcesComponent || strings.HasSuffix(name, "/"+SourcesComponent) {
		return Errorf(CodeInvalid, "model name %q: the last component %q is reserved for what releases are made from",
			name, SourcesComponent)
	}
	return nil
}

// ValidateVersion checks a version: SemVer without build metadata (a tag cannot contain '+')
// and without a final -r<N>, which tags use for revisions. Errors: CodeInvalid.
func ValidateVersion(version string) error {
	if !VersionPattern.MatchString(version) || len(version) > 64 {
		return Errorf(CodeInvalid,
			"version %q: want a semantic version without build metadata, for example 1.4.0 or 2.0.0-rc.1", version)
	}
	if RevisionPattern.MatchString(version) {
		return Errorf(CodeInvalid, "version %q: a final -r<N> is reserved for revisions of a version", version)
	}
	return nil
}

// TagOrDigest returns the part that selects a manifest of the repository: the digest, otherwise
// the tag, otherwise "" for the head.
func (r Ref) TagOrDigest() string {
	if r.Digest != "" {
		return string(r.Digest)
	}
	return r.Tag
}

// ModelOf returns the model of a repository, and whether the repository holds its sources.
func ModelOf(repository string) (model string, sources bool) {
	_, rest, _ := strings.Cut(repository, "/")
	return strings.CutSuffix(rest, "/"+SourcesComponent)
}
