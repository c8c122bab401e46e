package manifest

import (
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/serving"
)

// The version of reports has numbers, or there is none. A version that the manifest and the server state in numbers is the same.
func TestServerVersion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		told, manifest, want string
		fault                bool
	}{
		"told":                     {"2.51.0", "", "2.51.0", false},
		"in the manifest":          {"", "3.2", "3.2", false},
		"in both":                  {"2.51.0", "2.51.0", "2.51.0", false},
		"another one":              {"2.51.0", "2.50.0", "2.51.0", true},
		"a commit":                 {"2024.1.5d3e2a", "", "2024.1.5d3e2a", false},
		"a commit, and in numbers": {"2024.1.5d3e2a", "2024.1", "2024.1", false},
	} {
		o := &OpenedServer{Server: Server{Version: c.manifest}}
		told := serving.ProbeResult{About: serving.About{Version: c.told}}
		if got, fault := o.version(told), o.fault(told); got != c.want || (fault != "") != c.fault {
			t.Errorf("%s: %q, fault %q, want %q", name, got, fault, c.want)
		}
	}
}
