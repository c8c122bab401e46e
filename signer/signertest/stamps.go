package signertest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
)

// stamper is an authority for timestamps.
type stamper struct {
	root, intermediate, leaf *x509.Certificate
	key                      *ecdsa.PrivateKey
}

func newStamper(t testing.TB) *stamper {
	t.Helper()
	top, topKey, err := ca.GenerateRootCa()
	check(t, err)
	intermediate, key, err := ca.GenerateTSAIntermediate(top, topKey)
	check(t, err)
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	leaf, err := ca.GenerateTSALeafCert(time.Now().Add(-5*time.Minute), leafKey, intermediate, key)
	check(t, err)
	return &stamper{top, intermediate, leaf, leafKey}
}

func (s *stamper) authority() root.TimestampingAuthority {
	return &root.SigstoreTimestampingAuthority{Root: s.root,
		Intermediates: []*x509.Certificate{s.intermediate}, Leaf: s.leaf, URI: "https://tsa.example.com"}
}

// stamp answers a request with a time.
func (s *stamper) stamp(r *timestamp.Request, at time.Time) ([]byte, error) {
	made := timestamp.Timestamp{
		HashAlgorithm: r.HashAlgorithm, HashedMessage: r.HashedMessage, Nonce: r.Nonce, Time: at.UTC(),
		Policy: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 2}, AddTSACertificate: r.Certificates,
	}
	return made.CreateResponseWithOpts(s.leaf, s.key, crypto.SHA256)
}

// StampChain is the certificate chain of the authority for timestamps, in PEM.
func (a *Authority) StampChain(t testing.TB) []byte {
	t.Helper()
	var chain []byte
	for _, c := range []*x509.Certificate{a.stamps.leaf, a.stamps.intermediate, a.stamps.root} {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return chain
}

// Stamps answers RFC 3161 requests over HTTP. change, if there is one, changes the request before it is
// answered, and sets the time.
func (a *Authority) Stamps(change func(r *timestamp.Request) time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		r, err := timestamp.ParseRequest(body)
		if err != nil {
			http.Error(w, "no request", http.StatusBadRequest)
			return
		}
		at := time.Now()
		if change != nil {
			at = change(r)
		}
		answer, err := a.stamps.stamp(r, at)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/timestamp-reply")
		_, _ = w.Write(answer)
	})
}
