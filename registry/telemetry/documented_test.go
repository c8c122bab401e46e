package telemetry

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	described = regexp.MustCompile(`fqName: "(mlpromote_[a-z_]+)".*variableLabels: \{([a-z,]*)\}`)
	tableRow  = regexp.MustCompile("(?m)^\\| `(mlpromote_[a-z_]+)` \\| [a-z]+ \\| ?([a-z, ]*)\\|")
	mentioned = regexp.MustCompile(`mlpromote_[a-z_]+`)
)

// TestDocumented holds the table of monitor.md against the collectors, both ways, and its
// alerts against both.
func TestDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/how-to/monitor.md")
	if err != nil {
		t.Fatal(err)
	}
	tel := New("1.2.3", nil)
	all := make(chan *prometheus.Desc, 1000)
	tel.registry.Describe(all)
	close(all)
	exposed := make(map[string]string)
	for d := range all {
		if m := described.FindStringSubmatch(d.String()); m != nil {
			exposed[m[1]] = m[2]
		}
	}
	if len(exposed) < 10 {
		t.Fatalf("exposed are %v", exposed)
	}
	documented := make(map[string]string)
	for _, m := range tableRow.FindAllStringSubmatch(string(page), -1) {
		documented[m[1]] = strings.ReplaceAll(strings.TrimSpace(m[2]), " ", "")
	}
	for name, labels := range exposed {
		if got, ok := documented[name]; !ok {
			t.Errorf("%s is not in monitor.md", name)
		} else if name != "mlpromote_build_info" && got != labels {
			t.Errorf("%s has labels %q, and monitor.md says %q", name, labels, got)
		}
	}
	for name := range documented {
		if _, ok := exposed[name]; !ok {
			t.Errorf("%s is in monitor.md, and nothing exposes it", name)
		}
	}
	for _, name := range mentioned.FindAllString(string(page), -1) {
		plain := strings.TrimSuffix(name, "_bucket")
		if _, ok := exposed[plain]; !ok {
			t.Errorf("monitor.md speaks of %s", name)
		}
	}
}
