package environments

import (
	"strings"

	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/registry/trust"
)

// root is one file with trusted authorities as it is written.
type root struct {
	Sigstore   string `yaml:"sigstore"`
	Timestamps string `yaml:"timestamps"`
}

// checkRoots reads the roots and reports their mistakes.
func checkRoots(doc *strictyaml.Document, written []root) []trust.Root {
	var out []trust.Root
	for i, r := range written {
		read := trust.Root{Sigstore: r.Sigstore, Timestamps: r.Timestamps}
		if (r.Sigstore == "") == (r.Timestamps == "") || strings.ContainsRune(read.Path(), 0) {
			doc.At("roots", i).Problemf("want sigstore: PATH of a trusted_root.json, or timestamps: PATH of a certificate chain in PEM")
		}
		out = append(out, read)
	}
	return out
}
