//go:build kms_vault

package kms_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/kms"
)

// vault is a server with the transit engine of Vault.
type vault struct{ address, token string }

// startVault starts the program that MLPROMOTE_VAULTSERVER names, and has the provider of this process use it.
func startVault(t *testing.T) vault {
	t.Helper()
	program := os.Getenv("MLPROMOTE_VAULTSERVER")
	if program == "" {
		t.Skip("no Vault: make interop builds its transit engine, and sets MLPROMOTE_VAULTSERVER")
	}
	server := exec.CommandContext(t.Context(), program)
	server.Stderr = os.Stderr
	stdin, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close() // ends it
		_ = server.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	address, token, ok := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || !ok {
		t.Fatalf("the server said %q, error %v; want its address and a token", line, err)
	}
	t.Setenv("VAULT_ADDR", address)
	t.Setenv("VAULT_TOKEN", token)
	return vault{address, token}
}

// ask posts to the transit engine, as the vault program does.
func (v vault) ask(t *testing.T, path, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.address+"/v1/transit/"+path, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Vault-Token", v.token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode/100 != 2 {
		t.Fatalf("%s: %s: %s, error %v", path, answer.Status, text, err)
	}
}

// sign has the key at the URI sign, and verifies that by its public key.
func sign(t *testing.T, s signer.Signer) error {
	t.Helper()
	bundle, err := s.Sign(t.Context(), statement(t))
	if err != nil {
		return err
	}
	trust, err := signer.NewTrust(
		[]registry.TrustEntry{{Key: "k", Roles: registry.Roles(), Resources: []string{"oci://local/"}}},
		func(string) ([]byte, error) { return s.PublicKeyPEM(), nil })
	if err != nil {
		return err
	}
	claim, err := trust.Verify(t.Context(), bundle, "oci://local/prod/digits")
	if err == nil && claim.Signer != s.KeyID() {
		err = fmt.Errorf("signer %s, want %s", claim.Signer, s.KeyID())
	}
	return err
}

// Keys in Vault's transit engine sign. A program that goes on while the key is rotated signs nothing: Vault signs with the
// newest version, and the program has the public key of another.
func TestVault(t *testing.T) {
	v := startVault(t)
	v.ask(t, "keys/builder", `{"type":"ecdsa-p256"}`)
	v.ask(t, "keys/wide", `{"type":"ecdsa-p384"}`)
	s, err := kms.Open(t.Context(), write(t, "hashivault://builder\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := sign(t, s); err != nil {
		t.Errorf("sign: %v", err)
	}
	v.ask(t, "keys/builder/rotate", "")
	if err := sign(t, s); err == nil || !strings.Contains(err.Error(), "does not verify with the public key") {
		t.Errorf("sign after a rotation: error %v, want one that says so", err)
	}
	rotated, err := kms.OpenURI(t.Context(), "hashivault://builder")
	if err != nil {
		t.Fatal(err)
	}
	if err := sign(t, rotated); err != nil || rotated.KeyID() == s.KeyID() {
		t.Errorf("after a rotation: key %s, before %s, error %v; want another", rotated.KeyID(), s.KeyID(), err)
	}
	if _, err := kms.OpenURI(t.Context(), "hashivault://wide"); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("a key of P-384: error %v, want CodeInvalid", err)
	}
	if s, err := kms.OpenURI(t.Context(), "hashivault://nothere"); err == nil {
		t.Errorf("a key that is not there: %s, want an error", s.KeyID())
	}
	t.Setenv("VAULT_TOKEN", "another")
	if _, err := kms.OpenURI(t.Context(), "hashivault://builder"); !registry.HasCode(err, registry.CodeUnavailable) ||
		!strings.Contains(err.Error(), "permission denied") {
		t.Errorf("another token: error %v, want CodeUnavailable", err)
	}
	if err := sign(t, rotated); err != nil {
		t.Errorf("an open key signs with the token of its time: %v", err)
	}
}
