package authority_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/signer/signertest"
)

// Stock cosign takes what an identity signed for that identity, by the same root and without network.
func TestIdentityInCosign(t *testing.T) {
	t.Parallel()
	cosign := os.Getenv("MLPROMOTE_COSIGN")
	if cosign == "" {
		t.Skip("needs MLPROMOTE_COSIGN (tools/cosign)")
	}
	k := newKeyless(t, nil, nil, nil)
	blob := []byte("an engine")
	statement, err := evidence.NewStatement(evidence.PredicateSign, struct{}{},
		evidence.StatementSubject{Digest: evidence.NewDigestSet(digest.FromBytes(blob))})
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := k.signer.Sign(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"engine": blob, "bundle.json": bundle,
		"root.json": k.authority.Root(t), "other.json": signertest.New(t).Root(t)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	workflow := "https://github.com/" + signertest.Job().JobWorkflowRef
	for name, c := range map[string]struct{ root, identity, want string }{
		"the identity":      {"root.json", workflow, ""},
		"another workflow":  {"root.json", workflow + "2", "no matching CertificateIdentity found"},
		"another authority": {"other.json", workflow, "failed to verify"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verify := exec.CommandContext(t.Context(), cosign, "verify-blob-attestation", "--bundle", "bundle.json", "--trusted-root", c.root,
				"--certificate-identity", c.identity, "--certificate-oidc-issuer", signertest.Job().Issuer, "--type", string(evidence.PredicateSign),
				"--use-signed-timestamps", "--insecure-ignore-tlog", "--insecure-ignore-sct", "engine")
			verify.Dir, verify.Env = dir, append(os.Environ(), "HOME="+dir, "HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1")
			out, err := verify.CombinedOutput()
			if (err == nil) != (c.want == "") || !strings.Contains(string(out), c.want) {
				t.Errorf("got %v, %s, want %q", err, out, c.want)
			}
		})
	}
}
