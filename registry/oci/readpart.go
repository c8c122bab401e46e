package oci

import "mlpromote.dev/mlpromote/registry"

// ReadPart describes a part from the exact bytes of its manifest, without a
// repository: files, and the facts of an engine or reference. Its Set is nil. Errors:
// CodeInvalid when it is no part of ours; CodeTrust for file names that cannot be.
func ReadPart(manifest []byte) (registry.FetchedPart, error) {
	p, err := readPart(manifest)
	if err != nil {
		return registry.FetchedPart{}, err
	}
	return registry.FetchedPart{Role: p.role, Manifest: p.raw, Files: p.files, Engine: p.engine}, nil
}
