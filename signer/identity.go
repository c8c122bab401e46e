package signer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/trust"
)

// certified is what a certificate says about its signer, and when the signature was seen.
type certified struct {
	issuer   string
	subjects []string // forms of one name; the first is the one in the certificate
	claims   map[string]string
	trigger  string // what started the job, such as push
	stamped  time.Time
}

func (c certified) String() string { return fmt.Sprintf("%.200s %.300s", c.issuer, c.subjects[0]) }

// identify verifies a bundle with a certificate by one of the roots: the chain of the certificate at
// the time that an authority or log had seen the signature, and the signature. Where the root has
// logs of signatures or certificates, both must be in them. It asks no network.
func (a authorities) identify(e envelope) (certified, error) {
	if len(a.identities) == 0 {
		return certified{}, errors.New("it was signed with a certificate, and roots names no sigstore root: want one that was signed with a key")
	}
	leaf, err := e.leaf()
	if err != nil {
		return certified{}, err
	}
	var failed []error
	for _, material := range a.identities {
		result, err := identifyBy(e, material)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s", plain(err)))
			continue
		}
		return read(leaf, result)
	}
	return certified{}, errors.Join(failed...)
}

// leaf returns the certificate of the bundle if its key made the signature. It is checked first: that
// is cheap, and the library prints a line where another kind of key did not.
func (e envelope) leaf() (*x509.Certificate, error) {
	content, err := e.bundle.VerificationContent()
	if err != nil {
		return nil, fmt.Errorf("certificate: %s", plain(err))
	}
	leaf := content.Certificate()
	if leaf == nil {
		return nil, errors.New("it has no certificate")
	}
	key, ok := leaf.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("its certificate has a key of type %T, want ECDSA P-256", leaf.PublicKey)
	}
	if !ecdsa.VerifyASN1(key, e.signed[:], e.bundle.GetDsseEnvelope().GetSignatures()[0].GetSig()) {
		return nil, errors.New("its signature is not by the key of its certificate")
	}
	if names := len(leaf.URIs) + len(leaf.EmailAddresses) + len(leaf.DNSNames) + len(leaf.IPAddresses); names > 1 {
		return nil, fmt.Errorf("its certificate has %d names, want one", names)
	}
	return leaf, nil
}

func identifyBy(e envelope, material root.TrustedMaterial) (*verify.VerificationResult, error) {
	options := []verify.VerifierOption{verify.WithObserverTimestamps(1), verify.WithoutStatementPredicate()}
	if len(material.RekorLogs()) > 0 {
		options = append(options, verify.WithTransparencyLog(1))
	}
	if len(material.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	v, err := verify.NewVerifier(material, options...)
	if err != nil {
		return nil, err
	}
	// The caller compares subjects and identities: they follow rules of their own.
	return v.Verify(e.bundle, verify.NewPolicy(verify.WithoutArtifactUnsafe(), verify.WithoutIdentitiesUnsafe()))
}

// read reads what a verified certificate says. Source of the extensions:
// https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md.
func read(leaf *x509.Certificate, result *verify.VerificationResult) (certified, error) {
	summary := result.Signature.Certificate
	if summary == nil || summary.Issuer == "" || summary.SubjectAlternativeName == "" {
		return certified{}, errors.New("its certificate names no issuer or no subject")
	}
	c := certified{issuer: summary.Issuer, claims: claimsOf(leaf, summary.Extensions), trigger: summary.BuildTrigger}
	c.subjects = append([]string{summary.SubjectAlternativeName}, githubSubjects(c)...)
	for _, seen := range result.VerifiedTimestamps {
		if c.stamped.IsZero() || seen.Timestamp.Before(c.stamped) {
			c.stamped = seen.Timestamp.UTC()
		}
	}
	if c.stamped.IsZero() {
		return certified{}, errors.New("nothing shows when it was signed")
	}
	return c, nil
}

// deploymentEnvironment is the extension with the environment that a job deploys to.
var deploymentEnvironment = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 23}

// claimsOf are the claims of a token that a certificate repeats, by the names that trust entries use.
func claimsOf(leaf *x509.Certificate, x certificate.Extensions) map[string]string {
	claims := map[string]string{
		"repository_id": x.SourceRepositoryIdentifier, "repository_owner_id": x.SourceRepositoryOwnerIdentifier,
		"repository": withoutHost(x.SourceRepositoryURI), "job_workflow_ref": withoutHost(x.BuildSignerURI),
		"project_id": x.SourceRepositoryIdentifier, "namespace_id": x.SourceRepositoryOwnerIdentifier,
		"project_path": withoutHost(x.SourceRepositoryURI), "runner_environment": x.RunnerEnvironment, "ref": x.SourceRepositoryRef,
	}
	if uri, ok := strings.CutPrefix(x.BuildSignerURI, "https://"); ok {
		claims["ci_config_ref_uri"] = uri
	}
	if x.BuildTrigger == "pull_request" {
		claims["event_name"] = x.BuildTrigger
	}
	if len(leaf.EmailAddresses) == 1 {
		claims["email"] = leaf.EmailAddresses[0]
	}
	for _, extension := range leaf.Extensions {
		var text string
		if extension.Id.Equal(deploymentEnvironment) {
			if rest, err := asn1.Unmarshal(extension.Value, &text); err == nil && len(rest) == 0 {
				claims["environment"] = text
			}
		}
	}
	return claims
}

// withoutHost is the path of a URL; empty for what is none.
func withoutHost(uri string) string {
	rest, ok := strings.CutPrefix(uri, "https://")
	_, path, found := strings.Cut(rest, "/")
	if !ok || !found {
		return ""
	}
	return path
}

// githubIssuer issues the tokens of GitHub Actions.
const githubIssuer = "https://token.actions.githubusercontent.com"

// githubSubjects are the default sub of a token of GitHub Actions, by names and by permanent IDs. A
// certificate does not have the sub, but all that it is made of. Source:
// https://docs.github.com/en/actions/reference/security/oidc.
func githubSubjects(c certified) []string {
	owner, name, ok := strings.Cut(c.claims["repository"], "/")
	if c.issuer != githubIssuer || !ok || c.claims["repository_id"] == "" || c.claims["repository_owner_id"] == "" {
		return nil
	}
	what := "ref:" + escapeColon(c.claims["ref"])
	switch {
	case c.claims["environment"] != "":
		what = "environment:" + escapeColon(c.claims["environment"])
	case c.claims["event_name"] == "pull_request":
		what = "pull_request"
	}
	return []string{
		"repo:" + owner + "/" + name + ":" + what,
		"repo:" + owner + "@" + c.claims["repository_owner_id"] + "/" + name + "@" + c.claims["repository_id"] + ":" + what,
	}
}

func escapeColon(text string) string { return strings.ReplaceAll(text, ":", "%3A") }

// matches reports whether the signer has all that the identity asks for, character by character. The
// zero Identity, and one without subject and claims, match nothing.
func (c certified) matches(i trust.Identity) bool {
	if i.Issuer == "" || i.Issuer != c.issuer || i.Subject == "" && len(i.Claims) == 0 {
		return false
	}
	if i.Subject != "" && !slices.Contains(c.subjects, i.Subject) {
		return false
	}
	for name, want := range i.Claims {
		if want == "" || c.claims[name] != want {
			return false
		}
	}
	return !policy.IsProposedJob(c.issuer, c.trigger, c.claims["ref"]) || policy.AsksForProposedJobs(i.Subject, i.Claims)
}
