package signertest

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Claims are the claims of a token of GitHub Actions.
type Claims struct {
	Issuer            string `json:"iss"`
	Subject           string `json:"sub"`
	Audience          any    `json:"aud"`
	Expiry            int64  `json:"exp"`
	Repository        string `json:"repository,omitempty"`
	RepositoryID      string `json:"repository_id,omitempty"`
	RepositoryOwnerID string `json:"repository_owner_id,omitempty"`
	JobWorkflowRef    string `json:"job_workflow_ref,omitempty"`
	Ref               string `json:"ref,omitempty"`
	SHA               string `json:"sha,omitempty"`
	WorkflowRef       string `json:"workflow_ref,omitempty"`
	RunID             string `json:"run_id,omitempty"`
	RunAttempt        string `json:"run_attempt,omitempty"`
	EventName         string `json:"event_name,omitempty"`
	Environment       string `json:"environment,omitempty"`
	RunnerEnvironment string `json:"runner_environment,omitempty"`
	Email             string `json:"email,omitempty"`
	EmailVerified     bool   `json:"email_verified,omitempty"` // requested by sigstore's client in addition to an email
}

// Job are the claims of the job of [GitHub], in a token for sigstore that is valid for ten minutes.
func Job() Claims {
	return Claims{
		Issuer: "https://token.actions.githubusercontent.com", Subject: "repo:acme@123/vision@456:environment:production", Audience: "sigstore",
		Expiry: time.Now().Add(10 * time.Minute).Unix(), Repository: "acme/vision", RepositoryID: "456", RepositoryOwnerID: "123",
		JobWorkflowRef: "acme/ci/.github/workflows/build.yml@refs/heads/main", Ref: "refs/heads/main", EventName: "push", Environment: "production",
		RunnerEnvironment: "github-hosted",
	}
}

// Token is a token of the issuer that the authority trusts.
func (a *Authority) Token(t testing.TB, c Claims) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: a.tokens}, nil)
	check(t, err)
	payload, err := json.Marshal(c)
	check(t, err)
	signed, err := s.Sign(payload)
	check(t, err)
	text, err := signed.CompactSerialize()
	check(t, err)
	return text
}

// Fulcio issues certificates over HTTP, as Fulcio's signing API of version 2 does, for tokens of the
// authority's issuer. change, if there is one, changes the fields of a certificate and its
// key.
func (a *Authority) Fulcio(change func(c *Certificate, key *ecdsa.PublicKey) *ecdsa.PublicKey) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, key, err := a.admit(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		if change != nil {
			key = change(&c, key)
		}
		der, err := a.issue(c, key)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		var chain []string
		for _, raw := range [][]byte{der, a.intermediate.Raw, a.root.Raw} {
			chain = append(chain, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"signedCertificateEmbeddedSct": map[string]any{"chain": map[string]any{"certificates": chain}}})
	})
}

// admit checks a request: the token, and that the caller has the key.
func (a *Authority) admit(r *http.Request) (Certificate, *ecdsa.PublicKey, error) {
	if r.Method != http.MethodPost || r.URL.Path != "/api/v2/signingCert" {
		return Certificate{}, nil, fmt.Errorf("%s %s", r.Method, r.URL.Path)
	}
	signed, err := jose.ParseSigned(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return Certificate{}, nil, err
	}
	payload, err := signed.Verify(a.tokens.Public())
	if err != nil {
		return Certificate{}, nil, err
	}
	var c Claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return Certificate{}, nil, err
	}
	if c.Audience != "sigstore" || time.Now().Unix() > c.Expiry {
		return Certificate{}, nil, errors.New("the token is for another audience, or expired")
	}
	key, err := possessed(r, cmp.Or(c.Email, c.Subject))
	return c.certificate(), key, err
}

// possessed reads the key of a request, whose holder signed the subject.
func possessed(r *http.Request, subject string) (*ecdsa.PublicKey, error) {
	var request struct {
		PublicKeyRequest struct {
			PublicKey         struct{ Content string }
			ProofOfPossession []byte
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		return nil, err
	}
	block, _ := pem.Decode([]byte(request.PublicKeyRequest.PublicKey.Content))
	if block == nil {
		return nil, errors.New("no key")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	sum := sha256.Sum256([]byte(subject))
	if !ok || !ecdsa.VerifyASN1(key, sum[:], request.PublicKeyRequest.ProofOfPossession) {
		return nil, errors.New("the subject is not signed by the key")
	}
	return key, nil
}

// certificate is what Fulcio writes into a certificate for the claims.
func (c Claims) certificate() Certificate {
	if c.Email != "" {
		return Certificate{Issuer: c.Issuer, Email: c.Email}
	}
	workflow := "https://github.com/" + c.JobWorkflowRef
	return Certificate{Issuer: c.Issuer, URI: workflow, Extensions: map[int]string{
		BuildSigner: workflow, RunnerEnvironment: c.RunnerEnvironment, Repository: "https://github.com/" + c.Repository, Ref: c.Ref,
		RepositoryID: c.RepositoryID, OwnerID: c.RepositoryOwnerID, Trigger: c.EventName, Environment: c.Environment,
	}}
}
