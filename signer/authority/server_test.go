package authority_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/authority"
)

// The timestamps of sigstore's own server count, where roots has its certificates and not otherwise.
func TestTimestampsByServer(t *testing.T) {
	t.Parallel()
	program := os.Getenv("MLPROMOTE_TIMESTAMPSERVER")
	if program == "" {
		t.Skip("needs MLPROMOTE_TIMESTAMPSERVER (tools/timestampserver)")
	}
	url, other := timestampServer(t, program), timestampServer(t, program)
	for asked, counts := range map[string]bool{url: true, other: false} {
		roots := trusted(map[string][]byte{"tsa.pem": get(t, url+"/certchain")}, trust.Root{Timestamps: "tsa.pem"})
		s, err := signer.Sealed(newSigner(t), signer.Seal{Options: authority.Timestamps{URL: asked}.Options, Roots: roots, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Sign(t.Context(), statement(t)); (err == nil) != counts || err != nil && !registry.HasCode(err, registry.CodeTrust) {
			t.Errorf("got %v, want that the timestamp counts: %t", err, counts)
		}
	}
}

// timestampServer starts a server, which ends with the test.
func timestampServer(t *testing.T, program string) string {
	t.Helper()
	server := exec.CommandContext(t.Context(), program)
	in, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = server.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(url)
}

func get(t *testing.T, url string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, answer.Status, err)
	}
	return data
}
