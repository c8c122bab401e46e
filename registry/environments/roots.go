package environments

import (
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// root is one file with trusted authorities as it is written.
type root struct {
	Sigstore   string `yaml:"sigstore"`
	Timestamps string `yaml:"timestamps"`
}

// checkRoots reads the roots and reports their mistakes.
func checkRoots(doc *strictyaml.Document, version int, written []root) []registry.Root {
	if version < version2 && doc.Root() != nil {
		for _, e := range doc.Root().Entries() {
			if e.Key == "roots" {
				e.Name.Problemf("key %q needs version 2 of the file: add the line \"version: 2\" at its top", e.Key)
			}
		}
	}
	var out []registry.Root
	for i, r := range written {
		read := registry.Root{Sigstore: r.Sigstore, Timestamps: r.Timestamps}
		if (r.Sigstore == "") == (r.Timestamps == "") || strings.ContainsRune(read.Path(), 0) {
			doc.At("roots", i).Problemf("want sigstore: PATH of a trusted_root.json, or timestamps: PATH of a certificate chain in PEM")
		}
		out = append(out, read)
	}
	return out
}
