// Package signertest is a sigstore in the process of a test: a certificate authority as Fulcio is, and
// an authority for timestamps. It signs bundles with certificates as CI jobs get them.
package signertest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
)

// Authority vouches for identities and times.
type Authority struct {
	root, intermediate *x509.Certificate
	key                *ecdsa.PrivateKey
	logs               *ca.VirtualSigstore // for its logs alone
	stamps             *stamper
	tokens             *ecdsa.PrivateKey // of the issuer whose tokens it takes
}

// New makes an authority with keys of its own.
func New(t testing.TB) *Authority {
	t.Helper()
	top, topKey, err := ca.GenerateRootCa()
	check(t, err)
	intermediate, key, err := ca.GenerateFulcioIntermediate(top, topKey)
	check(t, err)
	logs, err := ca.NewVirtualSigstore()
	check(t, err)
	tokens, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	return &Authority{top, intermediate, key, logs, newStamper(t), tokens}
}

// Root is the trusted_root.json of the authority.
func (a *Authority) Root(t testing.TB) []byte {
	t.Helper()
	return a.rootWith(t, nil, nil)
}

// RootWithLog is a root that also names a log of signatures, in which those are that went through [Authority.Rekor].
func (a *Authority) RootWithLog(t testing.TB) []byte {
	t.Helper()
	return a.rootWith(t, nil, a.logs.RekorLogs())
}

// RootWithCertificateLog is a root that also names a log of certificates, in which none of the
// authority is.
func (a *Authority) RootWithCertificateLog(t testing.TB) []byte {
	t.Helper()
	return a.rootWith(t, a.logs.CTLogs(), nil)
}

func (a *Authority) rootWith(t testing.TB, certificates, signatures map[string]*root.TransparencyLog) []byte {
	t.Helper()
	authorities := []root.CertificateAuthority{&root.FulcioCertificateAuthority{
		Root: a.root, Intermediates: []*x509.Certificate{a.intermediate},
		ValidityPeriodStart: time.Now().Add(-time.Hour), URI: "https://fulcio.example.com",
	}}
	for _, logs := range []map[string]*root.TransparencyLog{certificates, signatures} {
		for id, known := range logs { // the library has the text of the ID in place of the ID
			raw, err := hex.DecodeString(id)
			check(t, err)
			known.ID = raw
		}
	}
	made, err := root.NewTrustedRoot(root.TrustedRootMediaType01, authorities,
		certificates, []root.TimestampingAuthority{a.stamps.authority()}, signatures)
	check(t, err)
	data, err := made.MarshalJSON()
	check(t, err)
	return data
}

// Certificate has the fields of a certificate. The zero times are a few minutes around now.
type Certificate struct {
	Issuer     string
	URI, Email string
	Extensions map[int]string // by the last number of Fulcio's OIDs 1.3.6.1.4.1.57264.1.N
	NotBefore  time.Time
	NotAfter   time.Time
	Curve      elliptic.Curve // P-256 without one
}

// Numbers of Fulcio's extensions.
const (
	BuildSigner       = 9
	RunnerEnvironment = 11
	Repository        = 12
	Ref               = 14
	RepositoryID      = 15
	OwnerID           = 17
	Trigger           = 20
	Environment       = 23
)

// GitHub is the certificate of a job of the repository acme/vision (ID 456) in the environment
// production.
func GitHub() Certificate {
	return Certificate{
		Issuer: "https://token.actions.githubusercontent.com",
		URI:    "https://github.com/acme/ci/.github/workflows/build.yml@refs/heads/main",
		Extensions: map[int]string{
			BuildSigner: "https://github.com/acme/ci/.github/workflows/build.yml@refs/heads/main", RunnerEnvironment: "github-hosted",
			Repository: "https://github.com/acme/vision", Ref: "refs/heads/main",
			RepositoryID: "456", OwnerID: "123", Trigger: "push", Environment: "production",
		},
	}
}

// With returns a copy with another value of an extension; an empty one leaves it out.
func (c Certificate) With(extension int, text string) Certificate {
	c.Extensions = maps.Clone(c.Extensions)
	c.Extensions[extension] = text
	return c
}

// issue makes a certificate for a key.
func (a *Authority) issue(c Certificate, key crypto.PublicKey) ([]byte, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: c.NotBefore, NotAfter: c.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	if template.NotBefore.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-5*time.Minute), time.Now().Add(5*time.Minute)
	}
	if c.URI != "" {
		u, err := url.Parse(c.URI)
		if err != nil {
			return nil, err
		}
		template.URIs = []*url.URL{u}
	}
	if c.Email != "" {
		template.EmailAddresses = []string{c.Email}
	}
	extensions := map[int]string{8: c.Issuer}
	maps.Copy(extensions, c.Extensions)
	for _, n := range slices.Sorted(maps.Keys(extensions)) {
		if extensions[n] == "" {
			continue
		}
		value, err := asn1.MarshalWithParams(extensions[n], "utf8")
		if err != nil {
			return nil, err
		}
		template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, n}, Value: value})
	}
	return x509.CreateCertificate(rand.Reader, template, a.intermediate, key, a.key)
}

// Document is a bundle with parts that a test can change.
type Document map[string]any

// Material is the verification material of the bundle.
func (d Document) Material() map[string]any { return d["verificationMaterial"].(map[string]any) }

// Bytes is the bundle.
func (d Document) Bytes(t testing.TB) []byte {
	t.Helper()
	data, err := json.Marshal(d)
	check(t, err)
	return data
}

// Sign signs an in-toto statement with a new key and a certificate for it. The bundle has no timestamp.
func (a *Authority) Sign(t testing.TB, c Certificate, statement []byte) Document {
	t.Helper()
	curve := c.Curve
	if curve == nil {
		curve = elliptic.P256()
	}
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	check(t, err)
	d := SignWith(t, key, statement)
	certificate, err := a.issue(c, key.Public())
	check(t, err)
	d["verificationMaterial"] = map[string]any{"certificate": map[string]any{"rawBytes": certificate}}
	return d
}

// SignWith signs an in-toto statement with a key.
func SignWith(t testing.TB, key *ecdsa.PrivateKey, statement []byte) Document {
	t.Helper()
	const kind = "application/vnd.in-toto+json"
	sum := sha256.Sum256(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(statement), statement))
	sig, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	check(t, err)
	return Document{
		"mediaType":            "application/vnd.dev.sigstore.bundle.v0.3+json",
		"verificationMaterial": map[string]any{"publicKey": map[string]any{"hint": "any"}},
		"dsseEnvelope":         map[string]any{"payload": statement, "payloadType": kind, "signatures": []any{map[string]any{"sig": sig}}},
	}
}

// Stamp adds a timestamp of now over the signature, and returns the bundle.
func (a *Authority) Stamp(t testing.TB, d Document) Document {
	t.Helper()
	sig := d["dsseEnvelope"].(map[string]any)["signatures"].([]any)[0].(map[string]any)["sig"].([]byte)
	sum := sha256.Sum256(sig)
	response, err := a.stamps.stamp(&timestamp.Request{HashAlgorithm: crypto.SHA256, HashedMessage: sum[:]}, time.Now())
	check(t, err)
	d.Material()["timestampVerificationData"] = map[string]any{"rfc3161Timestamps": []any{map[string]any{"signedTimestamp": response}}}
	return d
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
