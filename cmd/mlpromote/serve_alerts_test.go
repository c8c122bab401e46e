//go:build cgo

package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

var (
	alertExpression = regexp.MustCompile(`(?m)^ +expr: (.+)$`)
	alertSelector   = regexp.MustCompile(`(mlpromote_[a-z_]+)(?:\{([a-z]+)(=~|=|!=)"([^"]+)"\})?`)
	literals        = regexp.MustCompile(`^[a-z_|]+$`)
)

// TestAlerts reads the rules of monitor.md: a service that has just started has every metric
// that they name, and a counter for each value of a label that they select. One that appears
// with its first event, at 1, has not increased.
func TestAlerts(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/how-to/monitor.md")
	if err != nil {
		t.Fatal(err)
	}
	wanted := make(map[string]bool)
	for _, rule := range alertExpression.FindAllStringSubmatch(string(page), -1) {
		for _, m := range alertSelector.FindAllStringSubmatch(rule[1], -1) {
			name, label, operator, values := m[1], m[2], m[3], m[4]
			wanted["\n"+name] = true
			if operator == "!=" || !literals.MatchString(values) {
				continue // any of them, or errors that last, which rate() sees
			}
			for value := range strings.SplitSeq(values, "|") {
				wanted["\n"+name+"{"+label+`="`+value+`"} 0`+"\n"] = true
			}
		}
	}
	if len(wanted) < 12 {
		t.Fatalf("the rules name only %v", wanted)
	}
	dir := t.TempDir()
	if err := registrytest.Certificate(dir, "a service"); err != nil {
		t.Fatal(err)
	}
	s := programtest.NewService(t, fastProgram(t), dir)
	s.Flags = []string{"--tls-cert", filepath.Join(dir, "tls.crt"), "--tls-key",
		filepath.Join(dir, "tls.key"), "--scrub-interval", "1s", "--gc-interval", "1s"}
	s.MustStart(t)
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	var missing []string
	programtest.Eventually(t, "every metric of a rule", func() bool {
		_, body := programtest.Send(t, client, http.MethodGet, s.URL+"/metrics")
		missing = nil
		for text := range wanted {
			if !strings.Contains("\n"+string(body), text) {
				missing = append(missing, strings.TrimSpace(text))
			}
		}
		t.Logf("missing: %q", missing)
		return len(missing) == 0
	})
}
