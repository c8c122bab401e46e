package connect

import (
	"cmp"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/pipeline/confined"
	"mlpromote.dev/mlpromote/registry"
)

// DefaultData is the data directory where nothing says otherwise.
const DefaultData = confined.DataFolder

// Flags say which registry a program works with, and whom it trusts.
type Flags struct {
	Data      string // --data: data directory
	PolicyDir string // --policy-dir: folder of environments.yaml; empty: the data directory
	Registry  string // --registry: URL of a service
	TLSCA     string // --tls-ca: PEM file of a CA of the service
}

// Add defines the flags for all verbs of root. otherwise says what the registry is without --registry.
func (f *Flags) Add(root *cobra.Command, otherwise string) {
	flags := root.PersistentFlags()
	flags.StringVar(&f.Data, "data", "", "data directory (default MLPROMOTE_DATA, else "+DefaultData+")")
	flags.StringVar(&f.PolicyDir, "policy-dir", "",
		"folder of environments.yaml and access.yaml (default MLPROMOTE_POLICY_DIR, else the data directory)")
	flags.StringVar(&f.Registry, "registry", "", "URL of a service to work against (default MLPROMOTE_REGISTRY"+otherwise+")")
	flags.StringVar(&f.TLSCA, "tls-ca", "", "PEM file of a CA to trust, for a service with a certificate of a private one (default MLPROMOTE_CA)")
}

// Default fills unset flags from the environment. It rejects a URL with a password, before any verb can print,
// log or store it. Errors: CodeInvalid.
func (f *Flags) Default(getenv func(string) string) error {
	source := "--registry"
	if f.Registry == "" {
		source = "MLPROMOTE_REGISTRY"
	}
	f.Data = cmp.Or(f.Data, getenv("MLPROMOTE_DATA"), DefaultData)
	f.PolicyDir = cmp.Or(f.PolicyDir, getenv("MLPROMOTE_POLICY_DIR"))
	f.Registry = cmp.Or(f.Registry, getenv("MLPROMOTE_REGISTRY"))
	f.TLSCA = cmp.Or(f.TLSCA, getenv("MLPROMOTE_CA"))
	return checkURL(source, f.Registry)
}

// checkURL rejects the URL of a service that has more than its place.
func checkURL(source, url string) error {
	if shown := registry.RedactURL(url); shown != url {
		return registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "%s %s: want http://HOST:PORT or https://HOST, without a user, a password or a query", source, shown),
			"MLPROMOTE_TOKEN, and the credentials of docker login, authenticate you")
	}
	return nil
}

// PolicyFolder has environments.yaml and access.yaml.
func (f *Flags) PolicyFolder() string { return cmp.Or(f.PolicyDir, f.Data) }
