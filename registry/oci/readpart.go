package oci

import "mlpromote.dev/mlpromote/registry"

// ReadPart describes a part from the exact bytes of its manifest, without a repository: its
// files, and the fields of an engine or reference model. Its Set is nil. Errors: CodeInvalid
// for a manifest that is not a part of this format; CodeTrust for impossible file names.
func ReadPart(manifest []byte) (registry.FetchedPart, error) {
	p, err := readPart(manifest)
	if err != nil {
		return registry.FetchedPart{}, err
	}
	return registry.FetchedPart{Role: p.role, Manifest: p.raw, Files: p.files, Engine: p.engine}, nil
}
